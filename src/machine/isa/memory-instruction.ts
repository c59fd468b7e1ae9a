import type { ByteStore } from '../memory/index.js';

/** Distance between CTAs of adjacent ranks in the addresses of shared memory of a cluster. */
const clusterWindow = 2 ** 24;

/** The cluster address of an offset in the shared memory of a CTA: the result of PTX's `mapa`. */
export function clusterAddress(rank: number, offset: number): number {
  return rank * clusterWindow + offset;
}

/** The CTA and the offset of a cluster address. */
export function splitClusterAddress(address: number): { rank: number; offset: number } {
  return { rank: Math.floor(address / clusterWindow), offset: address % clusterWindow };
}

/** Registers of a warp, as a `Fragment` of instruction.ts. */
type Registers = ByteStore<ArrayBuffer>;

/**
 * The state space that an instruction names for an address. `generic`: none, the address determines
 * it. `shared::cta`: the own CTA's shared memory; `shared::cluster`: that of the cluster's CTAs.
 */
export type AccessSpace =
  'generic' | 'global' | 'shared::cta' | 'shared::cluster' | 'local' | 'const' | 'param';

/** The threads for which an access or a fence is to be ordered. Source: PTX ISA, "Scope". */
export type MemoryScope = 'cta' | 'cluster' | 'gpu' | 'sys';

/** The ordering of an access. `volatile` and `mmio` are relaxed accesses with the scope `sys`. */
export type MemoryOrder = 'weak' | 'relaxed' | 'acquire' | 'release' | 'acq_rel';

/**
 * A place of memory for each lane. Its address is one of the named state space (in `shared`, a cluster address:
 * the rank of the CTA in bits 24 and above), or a generic one.
 */
export interface LanePlaces {
  readonly space: AccessSpace;
  /** Address of each of the 32 lanes; −1 for a lane that does nothing. */
  readonly addresses: Float64Array;
  /** Bytes of each lane, all elements of a vector together. */
  readonly bytes: number;
  /** Alignment that the address must have; default `bytes`. */
  readonly alignment?: number;
}

/** Order of the accesses of a warp's lanes with those of others. */
export interface AccessOrder {
  readonly order: MemoryOrder;
  readonly scope: MemoryScope;
}

/** The operations of atomics. */
export type AtomicOperation =
  'and' | 'or' | 'xor' | 'exch' | 'cas' | 'add' | 'inc' | 'dec' | 'min' | 'max';

/** The types of atomics' elements. */
export type AtomicType =
  | 'b16'
  | 'b32'
  | 'b64'
  | 'b128'
  | 'u32'
  | 'u64'
  | 's32'
  | 's64'
  | 'f16'
  | 'f16x2'
  | 'bf16'
  | 'bf16x2'
  | 'f32'
  | 'f64';

/** Operands of `ld` and `st`: registers hold the bytes of memory, in whole words a lane ([lane][word]). */
type Transfer = LanePlaces &
  AccessOrder & {
    readonly op: 'ld' | 'st';
    readonly data: Registers;
  };

/** Operands of `atom` and `red`. `bytes` are those of the whole vector. */
type Atomic = LanePlaces &
  AccessOrder & {
    readonly op: 'atom' | 'red';
    readonly operation: AtomicOperation;
    readonly type: AtomicType;
    /** Elements of each lane's vector; 1 for a scalar. */
    readonly elements: number;
    /** [lane][word]: the operands, and for `cas` the value to store. */
    readonly operands: Registers;
    /** [lane][word]: the value that `cas` compares with; null for others. */
    readonly compared: Registers | null;
    /** [lane][word]: the old value; null for `red`. */
    readonly result: Registers | null;
  };

/** cp.async: each lane copies from global to shared memory. */
type LaneCopy = {
  readonly op: 'cp.async';
  /** In shared memory of the own CTA; `bytes` are 4, 8 or 16. */
  readonly destination: LanePlaces;
  readonly source: LanePlaces;
  /** Bytes that each lane reads; those behind them are written as zeros. */
  readonly sourceBytes: Int32Array;
};

/** The operation of a bulk reduction on each element of its destination, and their type. */
export interface BulkReduction {
  readonly operation: AtomicOperation;
  readonly type: AtomicType;
}

/**
 * cp.async.bulk and cp.reduce.async.bulk, by the space they write to. Places of one lane, at multiples of 16 bytes; their
 * `bytes` are those of the copy.
 */
type BulkCopy = {
  readonly source: LanePlaces;
  readonly destination: LanePlaces;
  /** Null for a copy. */
  readonly reduction: BulkReduction | null;
};

/** ldmatrix and stmatrix: 8 rows of 16 bytes a matrix, from or to the registers of all lanes. */
type MatrixTransfer = {
  readonly op: 'ldmatrix' | 'stmatrix';
  /** Lane 8m + r has row r of matrix m. */
  readonly rows: LanePlaces;
  readonly matrices: 1 | 2 | 4;
  readonly isTransposed: boolean;
  /** [lane][matrix]. */
  readonly data: Registers;
};

/** The instructions on memory, besides those that the tensor core and TMA have for themselves. */
export type MemoryInstruction =
  | Transfer
  | Atomic
  | LaneCopy
  | (BulkCopy & {
      readonly op: 'cp.async.bulk.shared';
      /** The cluster address of the barrier that counts the bytes. */
      readonly barrier: number;
      /** `.multicast::cluster`: the CTAs that get the bytes and whose barriers count them, each at the same offsets. */
      readonly multicast: readonly number[] | null;
    })
  | (BulkCopy & { readonly op: 'cp.async.bulk.global' })
  | {
      /** Lanes store into the shared memory of a CTA of the cluster, whose barrier counts the bytes. */
      readonly op: 'st.async' | 'red.async';
      readonly destination: LanePlaces;
      /** [lane][word]. */
      readonly data: Registers;
      /** Null for `st.async`. */
      readonly reduction: BulkReduction | null;
      /** A cluster address, the same for all lanes. */
      readonly barrier: number;
    }
  | MatrixTransfer
  | { readonly op: 'cp.async.commit_group' | 'cp.async.wait_all' }
  | {
      readonly op: 'cp.async.wait_group';
      /** The most recent groups that may be pending. */
      readonly pending: number;
    }
  | {
      readonly op: 'cp.async.mbarrier.arrive' | 'cp.async.mbarrier.arrive.noinc';
      /** A cluster address, of the own CTA. */
      readonly barrier: number;
      /** Number of lanes that execute it. */
      readonly threads: number;
    }
  | {
      /** `fence.acq_rel`, `fence.sc` and `membar`; they are all alike here. */
      readonly op: 'fence';
      readonly scope: MemoryScope;
    };
