//! Values as bytes, little-endian, without pickles or types. Reading back gives the same bits.

use std::collections::HashMap;
use std::sync::Mutex;

use ndarray::Array2;

use crate::threads::locked;

/// A value that can be written to bytes and read back.
pub(crate) trait Stored: Sized {
    /// Appends the value.
    fn store(&self, to: &mut Vec<u8>);

    /// Reads a value off the front; None if the bytes are not of this type.
    fn load(from: &mut &[u8]) -> Option<Self>;

    /// Returns the value as bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.store(&mut bytes);
        bytes
    }
}

/// Takes `count` bytes off the front; None if there are fewer.
pub(crate) fn taken<'b>(from: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

/// Implements [`Stored`] for a struct, field by field.
macro_rules! stored {
    ($type:ident $(<$param:ident>)? { $($field:ident),* $(,)? } $(with $($other:ident: $value:expr),+)?) => {
        impl $(<$param: $crate::stored::Stored>)? $crate::stored::Stored for $type $(<$param>)? {
            fn store(&self, to: &mut Vec<u8>) {
                $(self.$field.store(to);)*
            }

            fn load(from: &mut &[u8]) -> Option<Self> {
                $(let $field = $crate::stored::Stored::load(from)?;)*
                Some(Self { $($field,)* $($($other: $value,)+)? })
            }
        }
    };
}
pub(crate) use stored;

/// Implements [`Stored`] for numbers of eight bytes.
macro_rules! stored_numbers {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            fn store(&self, to: &mut Vec<u8>) {
                to.extend((*self as u64).to_le_bytes());
            }

            fn load(from: &mut &[u8]) -> Option<Self> {
                let bytes = taken(from, 8)?.try_into().ok()?;
                u64::from_le_bytes(bytes).try_into().ok()
            }
        }
    )*};
}
stored_numbers!(u64, usize);

impl Stored for f64 {
    fn store(&self, to: &mut Vec<u8>) {
        self.to_bits().store(to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        u64::load(from).map(Self::from_bits)
    }
}

impl Stored for u8 {
    fn store(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        taken(from, 1).map(|byte| byte[0])
    }
}

impl Stored for bool {
    fn store(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        taken(from, 1).map(|byte| byte[0] != 0)
    }
}

impl Stored for String {
    fn store(&self, to: &mut Vec<u8>) {
        self.len().store(to);
        to.extend(self.as_bytes());
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let count = usize::load(from)?;
        Self::from_utf8(taken(from, count)?.to_vec()).ok()
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn store(&self, to: &mut Vec<u8>) {
        self.len().store(to);
        self.iter().for_each(|value| value.store(to));
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let count = usize::load(from)?;
        (0..count).map(|_| T::load(from)).collect()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn store(&self, to: &mut Vec<u8>) {
        self.is_some().store(to);
        self.iter().for_each(|value| value.store(to));
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        match bool::load(from)? {
            true => T::load(from).map(Some),
            false => Some(None),
        }
    }
}

/// Implements [`Stored`] for tuples.
macro_rules! stored_tuples {
    ($(($($name:ident),+)),*) => {$(
        impl<$($name: Stored),+> Stored for ($($name,)+) {
            #[allow(non_snake_case)]
            fn store(&self, to: &mut Vec<u8>) {
                let ($($name,)+) = self;
                $($name.store(to);)+
            }

            fn load(from: &mut &[u8]) -> Option<Self> {
                Some(($($name::load(from)?,)+))
            }
        }
    )*};
}
stored_tuples!((A, B), (A, B, C), (A, B, C, D));

impl Stored for HashMap<Vec<usize>, f64> {
    fn store(&self, to: &mut Vec<u8>) {
        self.len().store(to);
        for (key, value) in self {
            key.store(to);
            value.store(to);
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Vec::load(from).map(|pairs: Vec<_>| pairs.into_iter().collect())
    }
}

impl<T: Stored> Stored for Mutex<T> {
    fn store(&self, to: &mut Vec<u8>) {
        locked(self).store(to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        T::load(from).map(Self::new)
    }
}

/// Sparse matrices are written by their nonzeros.
impl Stored for Array2<f64> {
    fn store(&self, to: &mut Vec<u8>) {
        self.dim().store(to);
        let nonzeros = || self.iter().enumerate().filter(|(_, v)| v.to_bits() != 0);
        let count = nonzeros().count();
        let sparse = 2 * count < self.len();
        sparse.store(to);
        if sparse {
            count.store(to);
            nonzeros().for_each(|(at, &value)| (at, value).store(to));
        } else {
            self.iter().for_each(|value| value.store(to));
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let (n, r) = <(usize, usize)>::load(from)?;
        let count = n.checked_mul(r)?;
        if bool::load(from)? {
            let mut values = Vec::new();
            values.try_reserve_exact(count).ok()?;
            values.resize(count, 0.0);
            for (at, value) in Vec::<(usize, f64)>::load(from)? {
                *values.get_mut(at)? = value;
            }
            return Self::from_shape_vec((n, r), values).ok();
        }
        let values: Option<Vec<f64>> = (0..count).map(|_| f64::load(from)).collect();
        Self::from_shape_vec((n, r), values?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn returns<T: Stored + PartialEq + std::fmt::Debug>(value: T) {
        let bytes = value.bytes();
        let rest = &mut bytes.as_slice();
        assert_eq!(T::load(rest), Some(value));
        assert!(rest.is_empty());
        for end in 0..bytes.len() {
            assert_eq!(T::load(&mut &bytes[..end]), None);
        }
    }

    #[test]
    fn values_return() {
        returns((3usize, u64::MAX, f64::NEG_INFINITY, true));
        returns(vec![Some("é".to_owned()), None]);
        returns(HashMap::from([(vec![1, 2], 3.0), (vec![], -0.0)]));
        returns(array![[0.0, 0.0, 1.5], [0.0, 0.0, 0.0]]);
        returns(array![[1.0, 2.0], [3.0, 0.0]]);
        returns(Array2::<f64>::zeros((0, 3)));
    }

    #[test]
    fn negative_zeros_and_nan_keep_their_bits() {
        let x = array![[-0.0, 0.0, 0.0, 0.0, f64::NAN]];
        let read = Array2::load(&mut x.bytes().as_slice()).unwrap();
        let bits = |x: &Array2<f64>| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&read), bits(&x));
    }

    #[test]
    fn hostile_counts_are_refused() {
        let huge = (usize::MAX, usize::MAX).bytes();
        assert!(Array2::<f64>::load(&mut huge.as_slice()).is_none());
        assert!(Vec::<f64>::load(&mut huge.as_slice()).is_none());
        assert!(String::load(&mut huge.as_slice()).is_none());
        let large = ((1usize << 50, 1usize), true, 0usize).bytes();
        assert!(Array2::<f64>::load(&mut large.as_slice()).is_none());
    }
}
