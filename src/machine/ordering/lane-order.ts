const lanes = 32;

/** An access of one lane. */
export interface LaneAccess {
  readonly lane: number;
  readonly isWrite: boolean;
  /** The place in the program, and the step of the run. */
  readonly site: string;
  readonly step: number;
}

/** A remembered access: its time on the clock of its lane, and the bytes of the word. */
interface TimedAccess extends LaneAccess {
  readonly time: number;
  readonly bytes: number;
}

/**
 * The order of the lanes of one warp in their accesses to shared memory. Convergence orders nothing: only `bar.warp.sync`, barriers of the CTA and of
 * the cluster, mbarriers and strong accesses do. The path of an order outside of the warp is not followed: a lane that waits or acquires learns
 * everything that lanes of its warp have published. Sources: PTX ISA, `bar.warp.sync` ("guarantees memory ordering among participating threads"),
 * `shfl.sync` and `vote.sync`, which promise no such ordering.
 *
 * Each lane has a vector clock of 32 times. Memory: the accesses since all lanes last met.
 */
export interface LaneOrder {
  /**
   * A weak access of a lane to bytes of a word of shared memory (bit i for byte i).
   *
   * @returns an earlier access of another lane, by another instruction, that it conflicts with and does not come after; null if
   *   there is none
   */
  readonly access: (word: number, bytes: number, access: LaneAccess) => LaneAccess | null;
  /** Lanes meet: each learns everything that any of them has done. */
  readonly meet: (mask: number) => void;
  /** Lanes publish their clocks: they arrive somewhere, or release. */
  readonly tell: (mask: number) => void;
  /** Lanes have waited for others, or acquired. */
  readonly learn: (mask: number) => void;
}

/** The order of a warp's lanes before any access. */
export function createLaneOrder(): LaneOrder {
  // Clock of lane l, from index 32·l on: its knowledge of each lane.
  const clocks = new Int32Array(lanes * lanes);
  for (let lane = 0; lane < lanes; lane++) clocks[lane * lanes + lane] = 1;
  const words = new Map<number, TimedAccess[]>();
  const told = new Int32Array(lanes);

  function forEachLane(mask: number, visit: (lane: number) => void): void {
    for (let lane = 0; lane < lanes; lane++) if (((mask >>> lane) & 1) === 1) visit(lane);
  }

  /** Adds these times to the clocks of the lanes. */
  function learn(mask: number, times: Int32Array): void {
    forEachLane(mask, (lane) => {
      for (let of = 0; of < lanes; of++) {
        const at = lane * lanes + of;
        clocks[at] = Math.max(clocks[at], times[of]);
      }
    });
  }

  /** Adds the clocks of the lanes to these times; their next events are later than that. */
  function tell(mask: number, times: Int32Array): void {
    forEachLane(mask, (lane) => {
      for (let of = 0; of < lanes; of++) times[of] = Math.max(times[of], clocks[lane * lanes + of]);
      clocks[lane * lanes + lane]++;
    });
  }

  return {
    access: (word, bytes, { lane, isWrite, site, step }) => {
      let earlier = words.get(word);
      if (earlier === undefined) words.set(word, (earlier = []));
      const conflict = earlier.find(
        (one) =>
          one.lane !== lane &&
          one.step !== step &&
          (one.isWrite || isWrite) &&
          (one.bytes & bytes) !== 0 &&
          one.time > clocks[lane * lanes + one.lane],
      );
      const time = clocks[lane * lanes + lane];
      const own = earlier.findIndex(
        (one) => one.lane === lane && one.isWrite === isWrite && one.bytes === bytes,
      );
      const access = { lane, isWrite, site, step, time, bytes };
      if (own === -1) earlier.push(access);
      else earlier[own] = access;
      return conflict ?? null;
    },
    meet: (mask) => {
      const times = new Int32Array(lanes);
      tell(mask, times);
      learn(mask, times);
      if ((mask | 0) === -1) words.clear();
    },
    tell: (mask) => tell(mask, told),
    learn: (mask) => learn(mask, told),
  };
}
