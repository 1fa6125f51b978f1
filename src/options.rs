//! Setters of option types, so that options can be added without breaking callers.

/// Writes a method `with_field(value)` for each listed field, where the type of `value` is that of the list.
macro_rules! setters {
    ($type:ty { $($with:ident($field:ident: $value:ty);)* }) => {
        impl $type {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $with(mut self, $field: $value) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}

pub(crate) use setters;
