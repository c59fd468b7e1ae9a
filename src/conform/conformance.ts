import type { CaptureSource } from './capture.js';
import { compareBlocks, type ResultComparison } from './comparison.js';
import {
  plannedBlocks,
  plannedTask,
  prepareConformance,
  type ConformancePlan,
  type ConformanceScope,
  type PlannedFunction,
} from './conformance-plan.js';
import { inputsPerBlock, type BlockProgress } from './silicon-hash.js';

export interface ConformanceOptions extends ConformanceScope {
  /** Default 1: this thread. The result does not depend on it. */
  readonly threads?: number;
  readonly progress?: BlockProgress;
}

/** fp32 bit patterns `first` to `last`, both included. */
export interface InputRange {
  readonly block: number;
  readonly first: number;
  readonly last: number;
}

/** The comparison of one function's model with the silicon. */
export interface InstructionConformance {
  readonly instruction: string;
  readonly pass: boolean;
  /** Bits of an input: with 16 every input is compared by itself, with 32 by fingerprint. */
  readonly inputBits: 16 | 32;
  readonly inputsChecked: number;
  /** The blocks of 2^20 fp32 inputs whose fingerprints were compared; null for 16 bits. */
  readonly blocksChecked: number | null;
  /** Ascending. */
  readonly mismatchingBlocks: readonly number[];
  readonly firstMismatchingBlock: InputRange | null;
  /** Single results compared: the table of all 16-bit inputs, or the pairs that a capture holds. */
  readonly results: ResultComparison;
}

/** The comparison of the models with one GPU. */
export interface Conformance {
  readonly pass: boolean;
  readonly exhaustive: boolean;
  /** Null when exhaustive. */
  readonly seed: string | null;
  readonly silicon: CaptureSource;
  readonly instructions: readonly InstructionConformance[];
  /** Functions that the captures have no data of. */
  readonly notCaptured: readonly string[];
}

/** The findings about one function. */
export interface FunctionFindings {
  /** Ascending; none for 16 bits. */
  readonly mismatchingBlocks: readonly number[];
  readonly results: ResultComparison;
}

function inputRange(block: number): InputRange {
  const first = block * inputsPerBlock;
  return { block, first, last: first + inputsPerBlock - 1 };
}

function instructionConformance(
  planned: PlannedFunction,
  { mismatchingBlocks, results }: FunctionFindings,
): InstructionConformance {
  const { instruction, inputBits } = planned;
  const blocksChecked = inputBits === 16 ? null : plannedBlocks(planned).length;
  return {
    instruction,
    pass: mismatchingBlocks.length === 0 && results.mismatching === 0,
    inputBits,
    inputsChecked: blocksChecked === null ? results.checked : blocksChecked * inputsPerBlock,
    blocksChecked,
    mismatchingBlocks,
    firstMismatchingBlock: mismatchingBlocks.length === 0 ? null : inputRange(mismatchingBlocks[0]),
    results,
  };
}

/** Assembles the comparison of the models from the findings about every planned function, in the plan's order. */
export function assembleConformance(
  { exhaustive, seed, silicon, functions, notCaptured }: ConformancePlan,
  findings: readonly FunctionFindings[],
): Conformance {
  const instructions = functions.map((planned, i) => instructionConformance(planned, findings[i]));
  return {
    pass: instructions.every(({ pass }) => pass),
    exhaustive,
    seed,
    silicon,
    instructions,
    notCaptured,
  };
}

/**
 * Compares the models of instructions with their captured results on silicon. Functions of 16 bits are
 * compared on every input. Those of an fp32 number are compared on a sample of blocks (chosen ones,
 * which show every entry of the model's tables and every edge of its range, and random ones) or,
 * exhaustively, on all 2^32 inputs; and on the single results that the captures hold.
 * @throws RequestError for an unknown instruction, captures that cannot be read, and a function that
 * was requested by name and not captured
 */
export async function checkConformance(options: ConformanceOptions = {}): Promise<Conformance> {
  const prepared = await prepareConformance(options);
  const { functions } = prepared.plan;
  const tasks = functions.map(({ instruction }) => plannedTask(prepared, instruction));
  const mismatching = await compareBlocks(tasks, options.threads ?? 1, options.progress);
  const findings = functions.map(({ instruction }, i) => ({
    mismatchingBlocks: mismatching[i],
    results: prepared.compareResults(instruction),
  }));
  return assembleConformance(prepared.plan, findings);
}
