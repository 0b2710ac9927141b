//! covary
fn main() {}
