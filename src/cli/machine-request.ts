import {
  fa4SettingsConfiguration,
  findMachineMutant,
  machineMutants,
  mutate,
  prepareFa4Program,
  type Fa4Configuration,
  type MachineMutant,
  type PreparedProgram,
  type ProgramChange,
  type ProgramRunOptions,
} from '../../kernels/index.js';
import { nearestName } from '../io/index.js';
import { memoryModels, type MemoryModel, type TraceEvent } from '../machine/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import type { MachineOptions } from './machine-options.js';
import { findSchedule, type ChosenSchedule } from './machine-schedule.js';

/** A run of the program on the machine, as the command line asks for it. */
export interface MachineRequest {
  readonly program: PreparedProgram;
  readonly schedule: ChosenSchedule;
  readonly model: MemoryModel;
  readonly races: boolean;
  readonly isaFences: boolean;
  readonly mutant: MachineMutant | null;
  /** Whether the mutant's place has come by so far; true where there is none to look for. */
  readonly hasMutated: () => boolean;
}

/** @throws RequestError for an unknown name, which names the nearest */
function findModel(name: string): MemoryModel {
  const models: Readonly<Record<string, MemoryModel>> = memoryModels;
  if (Object.hasOwn(models, name)) return models[name];
  const nearest = nearestName(name, Object.keys(models));
  throw new RequestError(
    `no memory model ${JSON.stringify(name)}; ${nearest === null ? `give ${Object.keys(models).join(', ')}` : `the nearest is ${nearest}`}`,
  );
}

/** @throws RequestError for an unknown id, which names the nearest */
function findMutant(id: string): MachineMutant {
  const mutant = findMachineMutant(id);
  if (mutant !== undefined) return mutant;
  const nearest = nearestName(
    id,
    machineMutants.map((known) => known.id),
  );
  throw new RequestError(
    `no mutant ${JSON.stringify(id)}; ${nearest === null ? 'flashproof emulate list --machine names them' : `the nearest is ${JSON.stringify(nearest)}`}`,
  );
}

/** The change, and whether it has met an instruction of the mutant's place. */
function watched(
  change: ProgramChange,
  site: string,
): { readonly change: ProgramChange; readonly hasMet: () => boolean } {
  let hasMet = false;
  const watch: ProgramChange = function* (program) {
    for (const instruction of program) {
      hasMet ||= instruction.site === site;
      yield instruction;
    }
  };
  return {
    change: (program, context) => change(watch(program, context), context),
    hasMet: () => hasMet,
  };
}

function prepareMutant(
  problem: Problem,
  configuration: Fa4Configuration,
  options: ProgramRunOptions,
  mutant: MachineMutant,
): Pick<MachineRequest, 'program' | 'hasMutated' | 'model'> {
  const { plan } = prepareFa4Program(problem, configuration, options);
  if (mutant.needsPair && plan.ctas === 1)
    throw new RequestError(
      `the mutant ${JSON.stringify(mutant.id)} is one in pairs of CTAs only; add --ctas 2`,
    );
  const mutation = mutate(mutant, plan);
  const isaFences = (mutation.isaFences ?? false) || (options.isaFences ?? false);
  const all = { ...mutation, ...options, isaFences };
  const model = all.model ?? memoryModels.practice;
  if (mutation.change === undefined)
    return {
      program: prepareFa4Program(problem, configuration, all),
      model,
      hasMutated: () => true,
    };
  const { change, hasMet } = watched(mutation.change, mutant.site);
  return {
    program: prepareFa4Program(problem, configuration, { ...all, change }),
    model,
    hasMutated: hasMet,
  };
}

/**
 * Makes the program ready as the command line asks for it.
 * @param settings of the kernel, as text by key
 * @param trace is told the events of every cluster
 * @throws RequestError for what the program does not run, and for unknown names
 */
export function prepareMachine(
  problem: Problem,
  settings: ReadonlyMap<string, string>,
  options: MachineOptions,
  trace?: (event: TraceEvent, cluster: number) => void,
): MachineRequest {
  if ((settings.get('variant') ?? 'none') !== 'none')
    throw new RequestError('the machine runs no variant; leave out --set variant or --machine');
  const schedule = findSchedule(
    options.schedule ?? (options.trace === undefined ? 'in-order' : 'timed'),
  );
  const mutant = options.mutant === undefined ? null : findMutant(options.mutant);
  const { ctas, clusters, races, isaFences = false } = options;
  const model = options.model === undefined ? undefined : findModel(options.model);
  const runOptions: ProgramRunOptions = {
    races,
    isaFences,
    scheduler: schedule.create,
    ...(model === undefined ? {} : { model }),
    ...(ctas === undefined ? {} : { ctas }),
    ...(clusters === undefined ? {} : { clusters }),
    ...(trace === undefined ? {} : { trace }),
  };
  const configuration = fa4SettingsConfiguration(problem, settings);
  const prepared =
    mutant === null
      ? {
          program: prepareFa4Program(problem, configuration, runOptions),
          model: model ?? memoryModels.practice,
          hasMutated: () => true,
        }
      : prepareMutant(problem, configuration, runOptions, mutant);
  const hasFences = prepared.program.plan.isaFences;
  return { ...prepared, schedule, races, isaFences: hasFences, mutant };
}
