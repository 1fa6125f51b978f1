//! Which vector instructions our kernels use: the best that the machine has, capped by the environment
//! variable `ORTHOBCD_SIMD`. Everything that dispatches asks [`arch`].

use std::sync::OnceLock;

use pulp::Arch;

use crate::error::{Error, Result};

/// Numbers in a vector of the widest instructions: loops over this many run in vectors, and arrays are padded to multiples of
/// it.
pub(crate) const LANES: usize = 8;

/// The environment variable; read once, when first needed.
const VARIABLE: &str = "ORTHOBCD_SIMD";

/// The values of the variable, from the least. A machine that lacks the named instructions uses what it has.
const LEVELS: [&str; 3] = ["scalar", "avx2", "avx512"];

fn capped(value: Option<&str>) -> Result<Arch> {
    match value {
        None | Some("" | "avx512") => Ok(Arch::new()),
        Some("avx2") => Ok(at_most_avx2()),
        Some("scalar") => Ok(Arch::Scalar),
        Some(other) => {
            Err(Error::invalid(VARIABLE, format!("must be unset or one of {}; got {other:?}", LEVELS.join(", "))))
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn at_most_avx2() -> Arch {
    pulp::x86::V3::try_new().map_or(Arch::Scalar, Arch::V3)
}

/// Other machines have vectors of two numbers, less than AVX2.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn at_most_avx2() -> Arch {
    Arch::new()
}

fn chosen() -> &'static Result<Arch> {
    static CHOSEN: OnceLock<Result<Arch>> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let value = std::env::var_os(VARIABLE);
        capped(value.as_ref().map(|v| v.to_string_lossy()).as_deref())
    })
}

/// The instructions to use. Entry points refuse a wrong variable ([`instructions`]); with a wrong variable, functions
/// that are called in another way work without vectors.
#[inline]
pub(crate) fn arch() -> Arch {
    chosen().as_ref().map_or(Arch::Scalar, |arch| *arch)
}

/// The vector instructions that the kernels use: `"scalar"`, or `"avx2"`, `"avx512"`, `"other"`.
///
/// They decide the last bits of a result, because sums are added in another order, and so where a search ends
/// on a problem with many local optima. The environment variable `ORTHOBCD_SIMD` caps them.
///
/// # Errors
/// If the variable has another value than `scalar`, `avx2` or `avx512`.
pub fn instructions() -> Result<&'static str> {
    match chosen() {
        Ok(Arch::Scalar) => Ok(LEVELS[0]),
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        Ok(Arch::V3(_)) => Ok(LEVELS[1]),
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        Ok(Arch::V4(_)) => Ok(LEVELS[2]),
        Ok(_) => Ok("other"),
        Err(error) => Err(error.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_never_exceeded_and_a_wrong_one_is_refused() {
        assert!(matches!(capped(Some("scalar")), Ok(Arch::Scalar)));
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        assert!(matches!(capped(Some("avx2")), Ok(Arch::Scalar | Arch::V3(_))));
        let best = std::mem::discriminant(&Arch::new());
        for free in [None, Some(""), Some("avx512")] {
            assert_eq!(std::mem::discriminant(&capped(free).unwrap()), best);
        }
        for wrong in ["AVX2", "sse2", "none", "1"] {
            let message = capped(Some(wrong)).unwrap_err().to_string();
            assert!(message.contains(VARIABLE) && message.contains("scalar, avx2, avx512"));
        }
    }
}
