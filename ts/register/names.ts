/** The native module that RivetKit asks for. */
export const NATIVE_MODULE = "@rivetkit/rivetkit-napi";
