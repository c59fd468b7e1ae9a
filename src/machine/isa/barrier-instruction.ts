import type { LaneMask } from '../../isa/index.js';

/** Barriers of a warp, a CTA and a cluster, their fences, and mbarriers, under the names of the PTX ISA. */
export type BarrierInstruction =
  | {
      readonly op:
        | 'fence.mbarrier_init'
        | 'fence.proxy.async'
        | 'barrier.cluster.arrive'
        | 'barrier.cluster.arrive.relaxed'
        | 'barrier.cluster.wait';
    }
  | {
      readonly op: 'bar.warp.sync';
      /** The lanes that meet; default all. */
      readonly lanes?: LaneMask;
    }
  | {
      readonly op: 'mbarrier.init';
      /** An offset in the CTA's own shared memory. */
      readonly barrier: number;
      readonly count: number;
      /** Name of the barrier in findings. */
      readonly name: string;
    }
  | { readonly op: 'mbarrier.inval'; readonly barrier: number }
  | {
      readonly op: 'mbarrier.arrive';
      /** A cluster address. */
      readonly barrier: number;
      /** The lanes that arrive, once each. */
      readonly lanes: LaneMask;
      /** Arrivals of each lane; default 1. */
      readonly count?: number;
      /** Receives the phase before the arrival, and the arrivals that it lacked: the state, in PTX's terms. */
      readonly state?: Uint32Array;
      /** Whether it must not complete the phase (`.noComplete`). */
      readonly mustNotComplete?: boolean;
      /** Whether later phases do not expect these arrivals any more (`arrive_drop`). */
      readonly drops?: boolean;
    }
  | {
      readonly op: 'mbarrier.arrive.expect_tx';
      /** A cluster address. */
      readonly barrier: number;
      readonly bytes: number;
      /** As those of `mbarrier.arrive`. */
      readonly state?: Uint32Array;
      readonly drops?: boolean;
    }
  | {
      readonly op: 'mbarrier.expect_tx';
      /** A cluster address. */
      readonly barrier: number;
      readonly bytes: number;
    }
  | {
      /** Tests whether a phase is complete, without waiting for it. */
      readonly op: 'mbarrier.test_wait';
      readonly barrier: number;
      /** The phase that an arrival has returned as its state, or the parity of one. */
      readonly awaited: { readonly phase: number } | { readonly parity: 0 | 1 };
      /** Receives 1 if it is, else 0. */
      readonly result: Uint32Array;
    }
  | {
      /** Waits for the end of the phase that an arrival has returned as its state. */
      readonly op: 'mbarrier.try_wait';
      readonly barrier: number;
      readonly phase: number;
    }
  | {
      readonly op: 'mbarrier.try_wait.parity';
      readonly barrier: number;
      readonly parity: 0 | 1;
    }
  | {
      readonly op: 'bar.sync' | 'bar.arrive';
      readonly barrier: number;
      /** Number of threads that meet; all that have not ended, where PTX names no number. */
      readonly threads: number | 'all';
    }
  | {
      /** bar.sync that also counts lanes. */
      readonly op: 'bar.red';
      readonly barrier: number;
      readonly threads: number | 'all';
      /** The lanes that take part, and those of them whose predicate is true. */
      readonly lanes: LaneMask;
      readonly trueLanes: LaneMask;
      /** Receives the number of lanes of all warps that took part, and the number of those whose predicate was true. */
      readonly result: Uint32Array;
    };
