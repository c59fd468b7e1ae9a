import { availableParallelism } from 'node:os';
import {
  describeGradientFits,
  fitGradientPremises,
  judgedGradients,
  outputGradient,
  sharedQuantities,
  type GradientAuditOptions,
  type GradientTensors,
} from '../../audit/index.js';
import { printable, type TensorFile } from '../../io/index.js';
import {
  auditGradientsOnThreads,
  type SourcedTensor,
  readStoredArgument,
  readTensorArgument,
  type TensorReading,
  outputGradientArgument,
} from '../../jobs/index.js';
import { quantities, type Problem, type Quantity, type Tensor } from '../../problem/index.js';
import {
  reportedGradients,
  type ReportedGradients,
  type TensorSource,
} from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { flagOf } from '../options/option-rows.js';
import type { AuditCommandOptions } from './options.js';

const [output, logSumExp] = quantities;

/** Places of the gradients of a request: `<file>[:<tensor>]` by quantity. */
export interface GradientArguments {
  readonly dout: string;
  readonly gradients: Readonly<Partial<Record<string, string>>>;
}

/** The gradients that a request names, by name. */
function namedGradients(options: AuditCommandOptions): GradientArguments['gradients'] {
  const named = judgedGradients.flatMap(({ name, option }) => {
    const argument = options[option];
    return argument === undefined ? [] : [[name, argument] as const];
  });
  return Object.fromEntries(named);
}

/**
 * The gradients to judge: those that options name, or all of the problem's file if no output is named or made
 * elsewhere; null if there are none, or no dO to judge them by.
 * @throws RequestError for a gradient that is named without dO, and for dO that is named without a gradient
 */
export function gradientArguments(
  file: TensorFile,
  options: AuditCommandOptions,
): GradientArguments | null {
  const { exec, kernel, launch } = options;
  // A model makes its own, and so does a compiled kernel.
  if (kernel !== undefined || launch !== undefined) return null;
  const named = namedGradients(options);
  const isNamed = Object.keys(named).length > 0;
  const isElsewhere = exec !== undefined || options[output.option] !== undefined;
  const own = judgedGradients
    .filter(({ name }) => file.entries.has(name))
    .map(({ name }) => [name, `:${name}`] as const);
  const gradients =
    isNamed || (isElsewhere && options.dout === undefined) ? named : Object.fromEntries(own);
  const dout = outputGradientArgument(file, options.dout);
  const wanted = Object.keys(gradients);
  if (dout !== undefined && wanted.length > 0) return { dout, gradients };
  if (isNamed)
    throw new RequestError(
      `${printable(file.path)}: ${wanted.join(', ')} ${wanted.length === 1 ? 'is' : 'are'} to be judged, but there is no gradient of the output; give it as ${flagOf('dout')} <file>[:tensor]`,
    );
  if (options.dout !== undefined)
    throw new RequestError(
      `${flagOf('dout')} names the gradient of the output, but there is none to judge; give ${judgedGradients.map(({ option }) => flagOf(option)).join(', ')}`,
    );
  return null;
}

/** Whether to judge the output that comes with the gradients too. */
export function hasOutput(file: TensorFile, options: AuditCommandOptions): boolean {
  const { exec, kernel } = options;
  const isMade = [exec, kernel, options[output.option]].some((one) => one !== undefined);
  return isMade || file.entries.has(output.name);
}

/** Gradients that were read, and their sources. */
export interface ReadGradients {
  readonly tensors: GradientTensors;
  readonly sources: Readonly<Record<string, TensorSource>>;
}

/**
 * Reads the gradients, and dO.
 * @throws RequestError when they cannot be read
 */
export async function readGradients(
  file: TensorFile,
  { dout, gradients }: GradientArguments,
  reading: TensorReading,
): Promise<ReadGradients> {
  const read: Record<string, SourcedTensor> = {};
  for (const quantity of judgedGradients) {
    const { name } = quantity;
    const argument = gradients[name];
    if (argument === undefined) continue;
    // The gradient of a bias or of sinks lies as what it is of, whatever the layout of Q.
    read[name] = sharedQuantities.some((one) => one.name === name)
      ? await readStoredArgument(argument, file, name)
      : await readTensorArgument(argument, file, quantity, reading);
  }
  const given = await readTensorArgument(dout, file, outputGradient, reading);
  const all = Object.entries({ ...read, dout: given });
  return {
    tensors: {
      ...Object.fromEntries(all.map(([name, { tensor }]) => [name, tensor])),
      dout: given.tensor,
    },
    sources: Object.fromEntries(all.map(([name, { source }]) => [name, source])),
  };
}

/** The LSE that a backward pass read if the output is not available; null if it is not known either. */
export async function readLoneLse(
  file: TensorFile,
  options: AuditCommandOptions,
  reading: TensorReading,
): Promise<SourcedTensor | null> {
  const quantity: Quantity = logSumExp;
  const argument =
    options[logSumExp.option] ?? (file.entries.has(quantity.name) ? `:${quantity.name}` : null);
  return argument === null ? null : readTensorArgument(argument, file, quantity, reading);
}

/** The word, in place of a premise, that asks for narrower premises that fit. */
const fit = 'fit';
const wordsOf = (texts: readonly string[]) =>
  texts.flatMap((text) => text.split(',')).map((word) => word.trim());

/** Whether --gradient-premise asks for narrower premises that fit. */
export function isFitWanted(texts: readonly string[]): boolean {
  return wordsOf(texts).includes(fit);
}

/** The other words of --gradient-premise. */
export function premisesBesideFit(texts: readonly string[]): readonly string[] {
  return wordsOf(texts).filter((word) => word !== fit);
}

/**
 * Judges gradients, for a report.
 * @param forward the kernel's own output and LSE, natural logarithms
 * @throws RequestError for tensors that do not fit the problem
 */
export async function judgeGradientFiles(
  problem: Problem,
  { tensors }: ReadGradients,
  forward: { readonly out: Tensor | null; readonly lse: Tensor | null },
  options: GradientAuditOptions,
  {
    threads = availableParallelism(),
    gradientPremise = [],
  }: Pick<AuditCommandOptions, 'threads' | 'gradientPremise'>,
): Promise<ReportedGradients> {
  const all = { ...tensors, ...forward };
  const report = reportedGradients(await auditGradientsOnThreads(problem, all, options, threads));
  if (!isFitWanted(gradientPremise)) return report;
  const silent = { ...options, progress: () => undefined };
  const fits = describeGradientFits(fitGradientPremises(problem, all, silent));
  return { ...report, fits };
}
