/**
 * The part of cbor-x that is used, from the copy that the build puts into `dist/`.
 *
 * Its declarations are for ES modules only, and this package is compiled to CommonJS.
 */

/** A value under a tag. */
export interface Tag {
  readonly value: unknown;
  readonly tag: number;
}

interface CborX {
  Encoder: new (options: {
    /** Objects as maps, never as numbered records. */
    useRecords: boolean;
    /** Maps without a tag decode to objects. */
    mapsAsObjects: boolean;
    /** A `Uint8Array` keeps its class, beside `Buffer`. */
    tagUint8Array: boolean;
    /** Decoded bytes share nothing with what was decoded. */
    copyBuffers: boolean;
    useToJSON: boolean;
  }) => { encode(value: unknown): Uint8Array; decode(bytes: Uint8Array): unknown };
  Tag: new (value: unknown, tag: number) => Tag;
  addExtension(extension: {
    Class: new () => object;
    tag: number;
    encode(value: object): never;
    decode(content: never): unknown;
  }): void;
}

// Without its native part, which takes longer to load than it ever saves here, and without `eval`.
const cborX: CborX = require("./vendor/cbor-x.cjs");

export const { Encoder, Tag, addExtension } = cborX;
