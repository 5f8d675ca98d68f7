//! Values laid over each other: the flags of a command over the file that it names.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{AfterWhen, ArraySpec, Credits, OverrunSpec, Replicas, TopologySpec, ValueSpec};

/// A value of which one source says a part and another the rest.
pub trait Overlay {
    /// This over `below`: what it says counts, and what it does not say is taken from below.
    #[must_use]
    fn over(self, below: Self) -> Self;
}

/// Declares a struct that is laid over another field by field.
macro_rules! layered {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $name {
            /// The names of its fields.
            pub const FIELDS: &[&str] = &[$(stringify!($field)),*];
        }

        impl $crate::Overlay for $name {
            fn over(self, below: $name) -> $name {
                $name { $($field: $crate::Overlay::over(self.$field, below.$field),)* }
            }
        }
    };
}

/// Values that count as a whole.
macro_rules! whole {
    ($($type:ty),*) => {$(
        impl Overlay for $type {
            fn over(self, _: $type) -> $type {
                self
            }
        }
    )*};
}
whole!(
    String,
    u32,
    u64,
    i32,
    Timestamp,
    AfterWhen,
    ArraySpec,
    Credits,
    OverrunSpec,
    Replicas,
    TopologySpec,
    ValueSpec
);

impl<T: Overlay> Overlay for Option<T> {
    fn over(self, below: Option<T>) -> Option<T> {
        match (self, below) {
            (Some(top), Some(below)) => Some(top.over(below)),
            (top, below) => top.or(below),
        }
    }
}

/// A switch that either source may turn on.
impl Overlay for bool {
    fn over(self, below: bool) -> bool {
        self || below
    }
}

impl<V> Overlay for BTreeMap<String, V> {
    fn over(self, mut below: BTreeMap<String, V>) -> BTreeMap<String, V> {
        below.extend(self);
        below
    }
}

/// What is below comes first, and nothing stands there twice.
impl<T: PartialEq> Overlay for Vec<T> {
    fn over(self, mut below: Vec<T>) -> Vec<T> {
        below.retain(|item| !self.contains(item));
        below.extend(self);
        below
    }
}
