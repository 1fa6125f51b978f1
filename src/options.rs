//! Option types whose options can be added without breaking callers.

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

/// A type of options: every field with its default and the name of its setter.
macro_rules! options {
    ($(#[$attribute:meta])* pub struct $type:ident {
        $($(#[$doc:meta])* $field:ident: [$($value:tt)+] = $default:expr, $with:ident;)*
    }) => {
        $(#[$attribute])*
        pub struct $type {
            $($(#[$doc])* pub $field: $($value)+,)*
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        $($crate::options::options!(@setter $type $with $field [$($value)+]);)*
    };
    (@setter $type:ident $with:ident $field:ident [Option<$value:ty>]) => {
        $crate::options::setters!($type { $with($field: impl Into<Option<$value>>); });
    };
    (@setter $type:ident $with:ident $field:ident [$value:ty]) => {
        $crate::options::setters!($type { $with($field: $value); });
    };
}

pub(crate) use {options, setters};
