import { warpLanes } from '../../../src/machine/index.js';

/** One mbarrier for each stage of a pipeline. */
export interface BarrierPlan {
  readonly name: string;
  readonly count: number;
  /** Offsets in shared memory, by stage. */
  readonly offsets: number[];
}

/** The mbarriers of the program, by the event that they signal. */
export interface ProgramBarriers {
  readonly queriesFull: BarrierPlan;
  readonly queriesEmpty: BarrierPlan;
  readonly ringFull: BarrierPlan;
  readonly ringEmpty: BarrierPlan;
  /** MMA → softmax: S is complete. */
  readonly scoresFull: BarrierPlan;
  /** Softmax and correction → MMA: the first 3/4 of P are written and O is rescaled. */
  readonly weightsFull: BarrierPlan;
  readonly weightsLast: BarrierPlan;
  readonly outputFull: BarrierPlan;
  /** Correction → softmax: α has been read. */
  readonly statisticsEmpty: BarrierPlan;
  readonly stagedFull: BarrierPlan;
  readonly stagedEmpty: BarrierPlan;
  /** Epilogue ↔ load, where O is staged in Q's memory: O has been stored. */
  readonly queriesFree: BarrierPlan;
  readonly queriesTaken: BarrierPlan;
  /** Between the CTAs of a pair: the other one's tensor memory may be freed. */
  readonly tensorFree: BarrierPlan;
}

const correctionThreads = 128;
const softmaxWarps = 4;

/** The mbarriers of a cluster of `ctas` CTAs, before they have places. */
export function barrierPlans(stages: number, ring: number, ctas: 1 | 2): ProgramBarriers {
  const plan = (name: string, count: number, of: number = stages): BarrierPlan => ({
    name,
    count,
    offsets: Array.from({ length: of }, () => -1),
  });
  return {
    queriesFull: plan('Q full', 1),
    queriesEmpty: plan('Q empty', 1),
    ringFull: plan('K/V full', 1, ring),
    ringEmpty: plan('K/V empty', 1, ring),
    scoresFull: plan('S full', 1),
    weightsFull: plan('P full, O rescaled', 2 * correctionThreads * ctas),
    weightsLast: plan('P full, last quarter', softmaxWarps * ctas),
    outputFull: plan('O full', 1),
    statisticsEmpty: plan('statistics empty', correctionThreads),
    stagedFull: plan('O staged', correctionThreads),
    stagedEmpty: plan('O stored', warpLanes),
    queriesFree: plan('Q free of O', 1, 1),
    queriesTaken: plan('Q taken', 1, 1),
    tensorFree: plan('tensor memory free', warpLanes, 1),
  };
}
