import { RequestError } from '../request-error.js';
import { sampleBlocks } from './block-sample.js';
import {
  bundledCaptures,
  readCapture,
  type CapturedFingerprint,
  type CapturedTable,
  type CaptureSource,
} from './capture.js';
import { compareBlocks } from './compare-blocks.js';
import { comparePairs, compareTable, type ResultComparison } from './compare-results.js';
import { blockCount, inputsPerBlock, type BlockProgress } from './silicon-hash.js';
import { targets, type Target } from './targets.js';

export interface ConformanceOptions {
  /** Names of functions; none for all that were captured. */
  readonly instructions?: readonly string[];
  /** All 4096 blocks of each function of an fp32 number instead of a sample; default false. */
  readonly exhaustive?: boolean;
  /** Default 1: this thread. The result does not depend on it. */
  readonly threads?: number;
  /** A folder of captures; default those that come with the package. */
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

/** How one function's model compares with the silicon. */
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

/** How the models compare with one GPU. */
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

/** The names of the functions that can be checked. */
export const knownInstructions: readonly string[] = targets.map(({ instruction }) => instruction);

/** The targets of the names, in the table's order and each once; all for no names. */
function chooseTargets(names: readonly string[]): readonly Target[] {
  const unknown = names.find((name) => !knownInstructions.includes(name));
  if (unknown !== undefined)
    throw new RequestError(
      `unknown instruction ${JSON.stringify(unknown)}; known are ${knownInstructions.join(', ')}`,
    );
  if (names.length === 0) return targets;
  return targets.filter(({ instruction }) => names.includes(instruction));
}

function fileOf(target: Target): string {
  return target.kind === 'fingerprint' ? `hash_${target.stem}.bin` : `${target.file}.bin.gz`;
}

function inputRange(block: number): InputRange {
  const first = block * inputsPerBlock;
  return { block, first, last: first + inputsPerBlock - 1 };
}

function fingerprintConformance(
  { target, pairs }: CapturedFingerprint,
  blocksChecked: number,
  mismatchingBlocks: readonly number[],
): InstructionConformance {
  const results = comparePairs(target.createModel, pairs);
  return {
    instruction: target.instruction,
    pass: mismatchingBlocks.length === 0 && results.mismatching === 0,
    inputBits: 32,
    inputsChecked: blocksChecked * inputsPerBlock,
    blocksChecked,
    mismatchingBlocks,
    firstMismatchingBlock: mismatchingBlocks.length === 0 ? null : inputRange(mismatchingBlocks[0]),
    results,
  };
}

function tableConformance(table: CapturedTable): InstructionConformance {
  const results = compareTable(table);
  return {
    instruction: table.target.instruction,
    pass: results.mismatching === 0,
    inputBits: 16,
    inputsChecked: results.checked,
    blocksChecked: null,
    mismatchingBlocks: [],
    firstMismatchingBlock: null,
    results,
  };
}

/**
 * Compares the models of instructions with what was captured of them on silicon. Functions of 16 bits
 * are compared on every input. Those of an fp32 number are compared on a sample of blocks (chosen ones,
 * which show every entry of the model's tables and every edge of its range, and random ones) or,
 * exhaustively, on all 2^32 inputs; and on the single results that the captures hold.
 * @throws RequestError for an unknown instruction, captures that cannot be read, and a function asked
 * for by name that was not captured
 */
export async function checkConformance(options: ConformanceOptions = {}): Promise<Conformance> {
  const { instructions = [], exhaustive = false, threads = 1, seed = '0' } = options;
  const chosen = chooseTargets(instructions);
  const folder = options.captures ?? bundledCaptures();
  const { source, fingerprints, tables, missing } = await readCapture(folder, chosen);
  if (missing.length > 0 && (instructions.length > 0 || missing.length === chosen.length))
    throw new RequestError(
      `${folder}: has no ${fileOf(missing[0])} with results of ${missing[0].instruction}; capture it or name other instructions`,
    );
  const everyBlock = Array.from({ length: blockCount }, (_, block) => block);
  const tasks = fingerprints.map(({ target, fingerprint }) => ({
    instruction: target.instruction,
    expected: fingerprint,
    blocks: exhaustive ? everyBlock : sampleBlocks(target.instruction, target.chosenBlocks(), seed),
  }));
  const mismatching = await compareBlocks(tasks, threads, options.progress);
  const results = [
    ...fingerprints.map((captured, i) =>
      fingerprintConformance(captured, tasks[i].blocks.length, mismatching[i]),
    ),
    ...tables.map(tableConformance),
  ];
  return {
    pass: results.every(({ pass }) => pass),
    exhaustive,
    seed: exhaustive ? null : seed,
    silicon: source,
    instructions: results,
    notCaptured: missing.map(({ instruction }) => instruction),
  };
}
