//! covary-io
