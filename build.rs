//! Tells the linker what a Node.js addon needs; nothing without the feature `node`.

fn main() {
    #[cfg(feature = "node")]
    napi_build::setup();
}
