import type { FormatName } from '../../formats/index.js';
import type { LaunchTensorMap } from './tensor-map.js';

/** A tensor in global memory. */
export interface LaunchTensor {
  readonly name: string;
  /** Type as the file spells it: `BF16`, `I32`. */
  readonly dtype: string;
  readonly elementBits: number;
  readonly shape: readonly number[];
  /** Its elements, little-endian and in row-major order. */
  readonly bytes: Uint8Array;
}

/** Three extents: x, y and z. */
export type Extents = readonly [number, number, number];

/** The target of a pointer among the parameters. */
type PointerTarget =
  | { readonly kind: 'tensor'; readonly name: string; readonly byteOffset: number }
  /** Number `index` of the scratch buffers. */
  | { readonly kind: 'scratch'; readonly index: number };

/** An output of the kernel that is wanted. */
export interface LaunchOutput {
  /** The tensor. */
  readonly name: string;
  readonly as: string | null;
  readonly format: FormatName | null;
}

/** A launch of a compiled kernel, all numbers known and checked against the entry. */
export interface Launch {
  readonly entry: string;
  /** Grid in CTAs. */
  readonly grid: Extents;
  /** Block in threads. */
  readonly block: Extents;
  /** Cluster in CTAs. */
  readonly cluster: Extents;
  readonly dynamicSharedBytes: number;
  /** The param space of the kernel from 0 on; pointers and tensor maps are zeros in it. */
  readonly parameters: Uint8Array;
  /** The pointers, of 8 bytes, to insert into the parameters: the address of an allocation plus its byte offset. */
  readonly pointers: readonly { readonly offset: number; readonly target: PointerTarget }[];
  /** The tensor maps, of 128 bytes, to insert into the parameters. */
  readonly tensorMaps: readonly { readonly offset: number; readonly map: LaunchTensorMap }[];
  /** All tensors that pointers, maps and outputs name. */
  readonly tensors: readonly LaunchTensor[];
  /** Bytes of each scratch buffer, whose contents are unwritten. */
  readonly scratch: readonly number[];
  readonly outputs: readonly LaunchOutput[];
}
