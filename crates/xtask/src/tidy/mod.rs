//! placeholder
pub fn run() -> Result<(), String> { Ok(()) }
