//! Tells the linker what a Node.js addon needs; nothing without the feature `node`.

fn main() {
    // Or else Cargo looks at every file here, and does not return from links to folders above.
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "node")]
    napi_build::setup();
}
