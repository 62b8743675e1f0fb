//! Fuzzes the CEL crate: under libFuzzer with the feature `libfuzzer`, else with inputs of its own for some seconds.

#![cfg_attr(feature = "libfuzzer", no_main)]

#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|data: &[u8]| pintle_fuzz::cel(data));

#[cfg(not(feature = "libfuzzer"))]
fn main() {
    pintle_fuzz::run(pintle_fuzz::cel, pintle_fuzz::CEL_SEEDS);
}
