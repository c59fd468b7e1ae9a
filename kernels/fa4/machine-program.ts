import { blackwellOf } from '../../src/hardware/index.js';
import { memoryModels, unitRates, type MemoryModel } from '../../src/machine/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type {
  KernelProgram,
  KernelProgramOptions,
  PreparedKernelProgram,
} from '../kernel-program.js';
import type { Fa4Configuration } from './configuration.js';
import {
  exponentialSplit,
  findMachineMutant,
  machineMutants,
  mutate,
  prepareFa4Program,
  rescaleTraffic,
  warpName,
  warpRoles,
  type MachineMutant,
  type PreparedProgram,
  type ProgramChange,
  type ProgramRunOptions,
} from './program/index.js';

/** A program as it will run: with the mutant, and with its memory model. */
interface Chosen {
  readonly program: PreparedProgram;
  readonly model: MemoryModel;
  readonly hasMutated: () => boolean;
}

/** The change, and whether it has met an instruction at the mutant's site. */
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
): Chosen {
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

function prepare(
  problem: Problem,
  configuration: Fa4Configuration,
  { mutant, ...options }: KernelProgramOptions,
): PreparedKernelProgram {
  const known = mutant === undefined ? undefined : findMachineMutant(mutant.id);
  const { program, model, hasMutated }: Chosen =
    known === undefined
      ? {
          program: prepareFa4Program(problem, configuration, options),
          model: options.model ?? memoryModels.practice,
          hasMutated: () => true,
        }
      : prepareMutant(problem, configuration, options, known);
  const { shape, plan, clusters, out, lse, run } = program;
  return {
    shape,
    outFormat: configuration.outFormat,
    ctas: plan.ctas,
    clusters,
    isaFences: plan.isaFences,
    model,
    rates: unitRates[blackwellOf(configuration.architecture)],
    out,
    lse,
    run,
    hasMutated,
    exponentials: exponentialSplit,
    rescales: (counters) => rescaleTraffic(counters, shape.vDim),
  };
}

/**
 * The program of FlashAttention-4's forward, see `prepareFa4Program`.
 * @param configurationOf the configuration that settings, as text by key, choose for a problem
 */
export function fa4Program(
  configurationOf: (problem: Problem, settings: ReadonlyMap<string, string>) => Fa4Configuration,
): KernelProgram {
  return {
    evidence: [
      'order of instructions: FlashAttention-4 sources, flash_fwd_sm100.py',
      "rules of the machine: PTX ISA; nothing of the execution was compared with a Blackwell GPU's",
    ],
    warpNames: warpRoles.map((_, warp) => warpName(warp)),
    mutants: machineMutants,
    features: [],
    prepare: (problem, settings, options) => {
      if ((settings.get('variant') ?? 'none') !== 'none')
        throw new RequestError('the machine runs no variant; leave out --set variant or --machine');
      return prepare(problem, configurationOf(problem, settings), options);
    },
  };
}
