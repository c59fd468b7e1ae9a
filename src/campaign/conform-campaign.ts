import {
  assembleConformance,
  bundledCaptures,
  compareShares,
  plannedBlocks,
  plannedTask,
  type BlockTask,
  type Conformance,
  type ConformancePlan,
  type PreparedConformance,
  type ResultComparison,
} from '../conform/index.js';
import { plainJson, type CampaignRequest } from './campaign-request.js';
import { rejectUnfinished, type JoinedParts } from './join-parts.js';
import { countByShard, hasUnit, type Shard } from './shard.js';
import type { UnitLog, UnitRecord } from './unit-log.js';

/** All facts that determine the results of a conformance test. */
export interface ConformRequest extends CampaignRequest {
  readonly command: 'conform';
  readonly plan: Omit<ConformancePlan, 'silicon'>;
  /** SHA-256 of the captured data. */
  readonly captures: string;
  /** The folder of the captures; null for the package's own, whose path differs between machines. */
  readonly folder: string | null;
  readonly silicon: Omit<ConformancePlan['silicon'], 'folder'>;
}

/** The request of a conformance test, as plain JSON. */
export function conformRequest(
  { plan, digest }: PreparedConformance,
  { folder, version }: Pick<ConformRequest, 'folder' | 'version'>,
): ConformRequest {
  const { silicon, ...rest } = plan;
  const { gpu, capability, driver, captured } = silicon;
  return plainJson({
    command: 'conform',
    version,
    plan: rest,
    captures: digest,
    folder,
    silicon: { gpu, capability, driver, captured },
  });
}

/** Blocks of one function that are compared at once, or its single results. */
interface ConformUnit {
  readonly name: string;
  readonly instruction: string;
  /** Indices of `plannedBlocks`, the second not included; null for the single results. */
  readonly blocks: readonly [first: number, end: number] | null;
}

type ConformUnitResult =
  { readonly mismatching: readonly number[] } | { readonly results: ResultComparison };

/** Blocks per unit: half a second, the most work that a killed process loses. */
const blocksPerUnit = 64;

function unitsOf(functions: ConformancePlan['functions']): ConformUnit[] {
  return functions.flatMap((planned): ConformUnit[] => {
    const { instruction } = planned;
    const { length } = plannedBlocks(planned);
    const blocks = Array.from({ length: Math.ceil(length / blocksPerUnit) }, (_, i) => {
      const [first, end] = [i * blocksPerUnit, Math.min((i + 1) * blocksPerUnit, length)];
      return {
        name: `${instruction} ${first}-${end - 1}`,
        instruction,
        blocks: [first, end] as const,
      };
    });
    return [...blocks, { name: `${instruction} results`, instruction, blocks: null }];
  });
}

/** Blocks to compare, and their unit. */
interface UnitTask extends BlockTask {
  readonly unit: string;
}

/**
 * Compares the units of a shard that the log does not know yet.
 * @param progress called after every unit with the number of units done, and of all units
 * @throws RequestError when the log cannot be written
 */
export async function runConformUnits(
  prepared: PreparedConformance,
  shard: Shard,
  log: UnitLog,
  threads: number,
  progress?: (done: number, total: number) => void,
): Promise<void> {
  const own = unitsOf(prepared.plan.functions).filter((_, position) => hasUnit(shard, position));
  const open = own.filter(({ name }) => !log.records.has(name));
  let done = own.length - open.length;
  const keep = (name: string, result: ConformUnitResult): void => {
    log.add(name, result);
    progress?.(++done, own.length);
  };
  for (const { name, instruction, blocks } of open)
    if (blocks === null) keep(name, { results: prepared.compareResults(instruction) });
  const tasks = open.flatMap(({ name, instruction, blocks }): UnitTask[] =>
    blocks === null ? [] : [{ unit: name, ...plannedTask(prepared, instruction, ...blocks) }],
  );
  await compareShares(tasks, threads, ({ unit }, mismatching) => keep(unit, { mismatching }));
}

/** The conformance from the results of all units. */
export function assembleConform(
  plan: ConformancePlan,
  records: ReadonlyMap<string, UnitRecord>,
): Conformance {
  const units = unitsOf(plan.functions);
  const findings = plan.functions.map(({ instruction }) => {
    const found = units
      .filter((unit) => unit.instruction === instruction)
      .map(({ name }) => records.get(name)!.result as ConformUnitResult);
    return {
      mismatchingBlocks: found
        .flatMap((result) => ('mismatching' in result ? result.mismatching : []))
        .sort((a, b) => a - b),
      results: found.flatMap((result) => ('results' in result ? [result.results] : []))[0],
    };
  });
  return assembleConformance(plan, findings);
}

/** The result of one shard: its number of units, and the functions that differ in any of them. */
export interface ConformShard {
  readonly units: number;
  readonly differing: readonly string[];
}

/** The known results of a shard's units. */
export function conformShard(
  { functions }: Pick<ConformancePlan, 'functions'>,
  records: ReadonlyMap<string, UnitRecord>,
): ConformShard {
  const differs = (result: ConformUnitResult): boolean =>
    'mismatching' in result ? result.mismatching.length > 0 : result.results.mismatching > 0;
  const differing = unitsOf(functions)
    .filter(({ name }) => records.has(name))
    .filter(({ name }) => differs(records.get(name)!.result as ConformUnitResult))
    .map(({ instruction }) => instruction);
  return { units: records.size, differing: [...new Set(differing)] };
}

/**
 * The conformance of a divided test.
 * @throws RequestError for a part that stopped before its end
 */
export function joinConform(joined: JoinedParts): Conformance {
  const { plan, silicon, folder } = joined.request as ConformRequest;
  const missing = [...unitsOf(plan.functions).entries()]
    .filter(([, { name }]) => !joined.records.has(name))
    .map(([position]) => position);
  rejectUnfinished(joined, countByShard(missing, joined.parts.length));
  const source = { folder: folder ?? bundledCaptures(), ...silicon };
  return assembleConform({ ...plan, silicon: source }, joined.records);
}
