import {
  blockCount,
  conversionTargets,
  type BlockProgress,
  type ConversionTarget,
  type FormatName,
} from '../formats/index.js';
import { RequestError } from '../request-error.js';
import { sampleBlocks } from './block-sample.js';
import { bundledCaptures, readCapture, type CaptureSource } from './capture.js';
import { compareBlocks } from './compare-blocks.js';

/** Inputs per block of a fingerprint. */
const inputsPerBlock = 2 ** 20;

export interface ConformanceOptions {
  /** PTX instructions by name; none for all. */
  readonly instructions?: readonly string[];
  /** All 4096 blocks of each instruction instead of a sample; default false. */
  readonly exhaustive?: boolean;
  /** Default 1: this thread. The result does not depend on it. */
  readonly threads?: number;
  /** A folder of fingerprints; default those that come with the package. */
  readonly captures?: string;
  /** Decides which random blocks are sampled; default "0". */
  readonly seed?: string;
  readonly progress?: BlockProgress;
}

/** fp32 bit patterns `first` to `last`, both included. */
export interface InputRange {
  readonly block: number;
  readonly first: number;
  readonly last: number;
}

/** How one instruction's model compares with the silicon. */
export interface InstructionConformance {
  readonly instruction: string;
  readonly format: FormatName;
  readonly blocksChecked: number;
  readonly inputsChecked: number;
  /** Ascending. */
  readonly mismatchingBlocks: readonly number[];
  readonly firstMismatch: InputRange | null;
}

/** How the models of conversion instructions compare with one GPU. */
export interface Conformance {
  readonly pass: boolean;
  readonly exhaustive: boolean;
  /** Null when exhaustive. */
  readonly seed: string | null;
  readonly silicon: CaptureSource;
  readonly instructions: readonly InstructionConformance[];
}

/** The names of the instructions that can be checked. */
export const knownInstructions: readonly string[] = conversionTargets.map(
  ({ instruction }) => instruction,
);

/** The targets of the names, in the table's order and each once; all for no names. */
function chooseTargets(names: readonly string[]): readonly ConversionTarget[] {
  const unknown = names.find((name) => !knownInstructions.includes(name));
  if (unknown !== undefined)
    throw new RequestError(
      `unknown instruction ${JSON.stringify(unknown)}; known are ${knownInstructions.join(', ')}`,
    );
  if (names.length === 0) return conversionTargets;
  return conversionTargets.filter(({ instruction }) => names.includes(instruction));
}

function inputRange(block: number): InputRange {
  const first = block * inputsPerBlock;
  return { block, first, last: first + inputsPerBlock - 1 };
}

/**
 * Compares the models of conversion instructions with their fingerprints captured on silicon: by a
 * sample of blocks (all edges of the format and random ones) or, exhaustively, on every fp32 input.
 * @throws RequestError for an unknown instruction or captures that cannot be read
 */
export async function checkConformance(options: ConformanceOptions = {}): Promise<Conformance> {
  const { instructions = [], exhaustive = false, threads = 1, seed = '0' } = options;
  const targets = chooseTargets(instructions);
  const capture = await readCapture(options.captures ?? bundledCaptures(), targets);
  const everyBlock = Array.from({ length: blockCount }, (_, block) => block);
  const tasks = targets.map(({ instruction, format }) => ({
    instruction,
    expected: capture.fingerprints.get(instruction)!,
    blocks: exhaustive ? everyBlock : sampleBlocks(format, seed),
  }));
  const mismatching = await compareBlocks(tasks, threads, options.progress);
  const results = targets.map(({ instruction, format }, i) => ({
    instruction,
    format: format.name,
    blocksChecked: tasks[i].blocks.length,
    inputsChecked: tasks[i].blocks.length * inputsPerBlock,
    mismatchingBlocks: mismatching[i],
    firstMismatch: mismatching[i].length === 0 ? null : inputRange(mismatching[i][0]),
  }));
  return {
    pass: results.every(({ firstMismatch }) => firstMismatch === null),
    exhaustive,
    seed: exhaustive ? null : seed,
    silicon: capture.source,
    instructions: results,
  };
}
