import { nearestName } from '../../words/index.js';
import {
  adversarialSchedulers,
  inOrderScheduler,
  type MemoryModel,
  memoryModels,
  randomScheduler,
  type Scheduler,
  timedScheduler,
  type TraceEvent,
} from '../../machine/index.js';
import { RequestError } from '../../request-error.js';
import type {
  KernelModel,
  KernelProgram,
  PreparedKernelProgram,
  ProgramMutant,
} from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';

/** The schedules that are not adversarial; `random:` takes any seed. */
export const schedules = [
  {
    name: 'in-order',
    description: 'each warp goes on until it has to wait; operations complete at once',
  },
  { name: 'timed', description: "by the clocks of an SM's units" },
  { name: 'random:<seed>', description: 'any step, some left behind for long' },
] as const;

/** The schedule of each cluster of a run. */
export interface ChosenSchedule {
  /** The name, as --schedule takes it. */
  readonly name: string;
  /** Whether its times are clocks. */
  readonly isTimed: boolean;
  /** Creates a new scheduler for a cluster: schedulers remember their choices. */
  readonly create: (cluster: number) => Scheduler;
}

/** The name of a schedule as one word. */
function oneWord(name: string): string {
  return name.replaceAll(' ', '-');
}

const mostSeed = 2 ** 32 - 1;

/** The names of the adversarial schedules for that many warps, as --schedule takes them. */
export function adversarialNames(warps: number): string[] {
  return adversarialSchedulers(warps).map(({ name }) => oneWord(name));
}

/** The programs of models, with all their mutants, and the adversarial schedules of their warps. */
export async function machineNames(models: readonly KernelModel[]) {
  const programs = await Promise.all(models.flatMap(({ program }) => program?.() ?? []));
  return {
    mutants: programs.flatMap(({ mutants }) => mutants),
    adversarial: [
      ...new Set(programs.flatMap(({ warpNames }) => adversarialNames(warpNames.length))),
    ],
  };
}

/**
 * The schedule of a name for CTAs of that many warps. Cluster n of `random:<seed>` has the seed plus n.
 * @throws RequestError for an unknown name, which names the nearest, and for a bad seed
 */
export function findSchedule(text: string, warps: number): ChosenSchedule {
  if (text === 'in-order') return { name: text, isTimed: false, create: () => inOrderScheduler() };
  if (text === 'timed') return { name: text, isTimed: true, create: () => timedScheduler() };
  const [kind, seedText] = text.split(':', 2);
  if (kind === 'random') {
    const seed = Number(seedText);
    if (!/^\d+$/.test(seedText ?? '') || seed > mostSeed)
      throw new RequestError(
        `--schedule is ${JSON.stringify(text)}; give random:<seed>, a whole number below 2^32`,
      );
    const create = (cluster: number) => randomScheduler((seed + cluster) % (mostSeed + 1));
    return { name: `random:${seed}`, isTimed: false, create };
  }
  const name = oneWord(text);
  const adversarial = adversarialNames(warps);
  const index = adversarial.indexOf(name);
  if (index === -1) {
    const nearest = nearestName(name, ['in-order', 'timed', 'random:1', ...adversarial]);
    throw new RequestError(
      `no schedule ${JSON.stringify(text)}; ${nearest === null ? 'flashproof emulate list --machine names them' : `the nearest is ${nearest}`}`,
    );
  }
  const create = () => adversarialSchedulers(warps)[index];
  return { name, isTimed: false, create };
}

/** Options of a program's run on the machine. */
export interface MachineOptions {
  /** CTAs of a cluster; default: as the kernel chooses. */
  readonly ctas?: 1 | 2 | undefined;
  /** Clusters that share the tiles; default: one for each SM. */
  readonly clusters?: number | undefined;
  /** A schedule's name; default: `in-order`, or `timed` with a trace. */
  readonly schedule?: string | undefined;
  /** Whether to detect races. */
  readonly races: boolean;
  /** A memory model's name; default: `practice`. */
  readonly model?: string | undefined;
  /** Whether to add the fences and waits that the PTX ISA asks for; default: false. */
  readonly isaFences?: boolean | undefined;
  /** The id of a mistake in the synchronisation; default: none. */
  readonly mutant?: string | undefined;
}

/** A run of a program on the machine, ready to begin. */
export interface MachineRequest {
  readonly program: PreparedKernelProgram;
  readonly warpNames: readonly string[];
  /** The evidence behind the execution, a line each. */
  readonly evidence: readonly string[];
  readonly schedule: ChosenSchedule;
  readonly races: boolean;
  readonly mutant: ProgramMutant | null;
}

/**
 * A model of a name with its program.
 * @throws RequestError for a name without a program, with those that have one
 */
export async function modelWithProgram(
  name: string,
  models: readonly KernelModel[],
): Promise<{ readonly model: KernelModel; readonly kernel: KernelProgram }> {
  const model = models.find((known) => known.name === name);
  if (model !== undefined && model.program !== null)
    return { model, kernel: await model.program() };
  const others = models.filter(({ program }) => program !== null).map(({ name }) => name);
  throw new RequestError(
    `${JSON.stringify(name)} has no program for the machine; --machine runs ${others.join(', ')}`,
  );
}

/**
 * The memory model of a name.
 * @throws RequestError for an unknown name, which names the nearest
 */
export function findMemoryModel(name: string): MemoryModel {
  const models: Readonly<Record<string, MemoryModel>> = memoryModels;
  if (Object.hasOwn(models, name)) return models[name];
  const nearest = nearestName(name, Object.keys(models));
  throw new RequestError(
    `no memory model ${JSON.stringify(name)}; ${nearest === null ? `give ${Object.keys(models).join(', ')}` : `the nearest is ${nearest}`}`,
  );
}

/** @throws RequestError for an unknown id, which names the nearest */
function findMutant({ mutants }: KernelProgram, id: string): ProgramMutant {
  const mutant = mutants.find((known) => known.id === id);
  if (mutant !== undefined) return mutant;
  const nearest = nearestName(
    id,
    mutants.map((known) => known.id),
  );
  throw new RequestError(
    `no mutant ${JSON.stringify(id)}; ${nearest === null ? 'flashproof emulate list --machine names them' : `the nearest is ${JSON.stringify(nearest)}`}`,
  );
}

/**
 * Prepares a program to run.
 * @param settings of the kernel, as text by key
 * @param trace receives the events of every cluster
 * @throws RequestError for problems that the program does not run, and for unknown names
 */
export function prepareMachine(
  kernel: KernelProgram,
  problem: Problem,
  settings: ReadonlyMap<string, string>,
  options: MachineOptions,
  trace?: (event: TraceEvent, cluster: number) => void,
): MachineRequest {
  const { ctas, clusters, races, isaFences = false, mutant: id, model } = options;
  const { warpNames, evidence } = kernel;
  const schedule = findSchedule(
    options.schedule ?? (trace === undefined ? 'in-order' : 'timed'),
    warpNames.length,
  );
  const mutant = id === undefined ? null : findMutant(kernel, id);
  const program = kernel.prepare(problem, settings, {
    races,
    isaFences,
    scheduler: schedule.create,
    ...(model === undefined ? {} : { model: findMemoryModel(model) }),
    ...(ctas === undefined ? {} : { ctas }),
    ...(clusters === undefined ? {} : { clusters }),
    ...(trace === undefined ? {} : { trace }),
    ...(mutant === null ? {} : { mutant }),
  });
  return { program, warpNames, evidence, schedule, races, mutant };
}
