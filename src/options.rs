//! Setters of option types, so that options can be added without breaking callers.

/// Methods `with_field(value)` for fields of a type that implements what `value` is given as.
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
