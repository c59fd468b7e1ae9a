import { createHash } from 'node:crypto';
import { RequestError } from '../request-error.js';
import { nearClause } from '../words/index.js';
import { sampleBlocks } from './block-sample.js';
import { bundledCaptures, readCapture, type Capture, type CaptureSource } from './capture.js';
import { type BlockTask, comparePairs, compareTable, type ResultComparison } from './comparison.js';
import { blockCount } from './silicon-hash.js';
import { targets, type Target } from './targets.js';

/** The choice of functions, captures and inputs to compare. */
export interface ConformanceScope {
  /** Names of functions; none for all that were captured. */
  readonly instructions?: readonly string[];
  /** All 4096 blocks of each function of an fp32 number instead of a sample; default false. */
  readonly exhaustive?: boolean;
  /** A folder of captures; default those that come with the package. */
  readonly captures?: string;
  /** Decides which random blocks are sampled; default "0". */
  readonly seed?: string;
}

/** The comparisons planned for one function. */
export interface PlannedFunction {
  readonly instruction: string;
  readonly inputBits: 16 | 32;
  /** The sampled blocks, ascending; null for all of them, and for 16 bits, which have none. */
  readonly sample: readonly number[] | null;
}

/** All comparisons, before any of them is made; plain data. */
export interface ConformancePlan {
  readonly exhaustive: boolean;
  /** Null when exhaustive. */
  readonly seed: string | null;
  readonly silicon: CaptureSource;
  readonly functions: readonly PlannedFunction[];
  /** Functions that the captures have no data of. */
  readonly notCaptured: readonly string[];
}

/** A plan with the captured data that it is carried out against. */
export interface PreparedConformance {
  readonly plan: ConformancePlan;
  /** SHA-256, hexadecimal, of all the captured data. */
  readonly digest: string;
  /** The captured fingerprint of a planned function; empty for one of 16 bits. */
  readonly fingerprint: (instruction: string) => Uint8Array;
  /** Compares the single results that the capture has of a planned function. */
  readonly compareResults: (instruction: string) => ResultComparison;
}

/** The names of the functions that can be checked. */
export const knownInstructions: readonly string[] = targets.map(({ instruction }) => instruction);

const everyBlock: readonly number[] = Array.from({ length: blockCount }, (_, block) => block);

/** The blocks of a planned function, ascending; none for 16 bits. */
export function plannedBlocks({ inputBits, sample }: PlannedFunction): readonly number[] {
  return inputBits === 16 ? [] : (sample ?? everyBlock);
}

/** The targets of the names, in the table's order and each once; all for no names. */
function chooseTargets(names: readonly string[]): readonly Target[] {
  const unknown = names.find((name) => !knownInstructions.includes(name));
  if (unknown !== undefined)
    throw new RequestError(
      `unknown instruction ${JSON.stringify(unknown)}${nearClause(unknown, knownInstructions)}; known are ${knownInstructions.join(', ')}`,
    );
  if (names.length === 0) return targets;
  return targets.filter(({ instruction }) => names.includes(instruction));
}

function fileOf(target: Target): string {
  return target.kind === 'fingerprint' ? `hash_${target.stem}.bin` : `${target.file}.bin.gz`;
}

/** SHA-256 of the captured data of every function, with its name. */
function digestOf({ fingerprints, tables }: Capture): string {
  const hash = createHash('sha256');
  for (const { target, fingerprint, pairs } of fingerprints) {
    hash.update(`${target.instruction}\n`).update(fingerprint);
    for (const { inputs, results } of pairs) hash.update(inputs).update(results);
  }
  for (const { target, results } of tables) hash.update(`${target.instruction}\n`).update(results);
  return hash.digest('hex');
}

/**
 * Reads the captures and plans the comparisons.
 * @throws RequestError for an unknown instruction, captures that cannot be read, and a function that
 * was requested by name and not captured
 */
export async function prepareConformance(
  options: ConformanceScope = {},
): Promise<PreparedConformance> {
  const { instructions = [], exhaustive = false, seed = '0' } = options;
  const chosen = chooseTargets(instructions);
  const folder = options.captures ?? bundledCaptures();
  const capture = await readCapture(folder, chosen);
  const { source, fingerprints, tables, missing } = capture;
  if (missing.length > 0 && (instructions.length > 0 || missing.length === chosen.length))
    throw new RequestError(
      `${folder}: has no ${fileOf(missing[0])} with results of ${missing[0].instruction}; capture it or name other instructions`,
    );
  const compare = new Map([
    ...fingerprints.map(
      ({ target, pairs }) =>
        [target.instruction, () => comparePairs(target.createModel, pairs)] as const,
    ),
    ...tables.map((table) => [table.target.instruction, () => compareTable(table)] as const),
  ]);
  const known = new Map(
    fingerprints.map(({ target, fingerprint }) => [target.instruction, fingerprint]),
  );
  return {
    plan: {
      exhaustive,
      seed: exhaustive ? null : seed,
      silicon: source,
      functions: [
        ...fingerprints.map(({ target: { instruction, chosenBlocks } }): PlannedFunction => ({
          instruction,
          inputBits: 32,
          sample: exhaustive ? null : sampleBlocks(instruction, chosenBlocks(), seed),
        })),
        ...tables.map(({ target: { instruction } }): PlannedFunction => ({
          instruction,
          inputBits: 16,
          sample: null,
        })),
      ],
      notCaptured: missing.map(({ instruction }) => instruction),
    },
    get digest() {
      return digestOf(capture);
    },
    fingerprint: (instruction) => known.get(instruction) ?? new Uint8Array(0),
    compareResults: (instruction) => compare.get(instruction)!(),
  };
}

/** A share of a plan's blocks: those of one function, from an index of `plannedBlocks` up to another. */
export function plannedTask(
  { plan, fingerprint }: PreparedConformance,
  instruction: string,
  first = 0,
  end = blockCount,
): BlockTask {
  const planned = plan.functions.find((known) => known.instruction === instruction)!;
  const blocks = plannedBlocks(planned).slice(first, end);
  return { instruction, expected: fingerprint(instruction), blocks };
}
