//! A macro that defines metrics with their types, names and descriptions.

/// Defines a struct of metrics, its default, and a method that registers them all. A metric is initialized with its default, or with the
/// expression after `=`. Fields that are not metrics come after `with`.
macro_rules! metrics {
    (@new) => { Default::default() };
    (@new $made:expr) => { $made };
    (
        $(#[$of_struct:meta])*
        $visible:vis struct $name:ident {
            $($(#[$of_field:meta])* $shown:vis $field:ident: $kind:ty $(= $made:expr)? => $metric:literal, $help:literal;)*
        }
        $(with { $($(#[$of_other:meta])* $open:vis $other:ident: $other_kind:ty,)* })?
    ) => {
        $(#[$of_struct])*
        $visible struct $name {
            $($(#[$of_field])* $shown $field: $kind,)*
            $($($(#[$of_other])* $open $other: $other_kind,)*)?
        }

        impl Default for $name {
            fn default() -> $name {
                $name {
                    $($field: metrics!(@new $($made)?),)*
                    $($($other: Default::default(),)*)?
                }
            }
        }

        impl $name {
            pub const DESCRIPTIONS: &'static [$crate::metrics::Description] =
                &[$($crate::metrics::Description { name: $metric, kind: stringify!($kind), help: $help }),*];

            pub fn register(&self, registry: &mut prometheus_client::registry::Registry) {
                $(registry.register($metric, $help, self.$field.clone());)*
            }
        }
    };
}

macro_rules! labels {
    ($($(#[$of_struct:meta])* $visible:vis struct $name:ident { $($fields:tt)* })*) => {
        $(
            $(#[$of_struct])*
            #[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
            $visible struct $name { $($fields)* }
        )*
    };
}
