import {
  judgedGradients,
  outputGradient,
  sharedQuantities,
  type GradientTensors,
} from '../../audit/index.js';
import { printable, type TensorFile } from '../../io/tensors/index.js';
import { quantities } from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import {
  readStoredArgument,
  readTensorArgument,
  type SourcedTensor,
  type TensorPlaces,
  type TensorReading,
} from './read-outputs.js';

const [output, logSumExp] = quantities;

/** Names that a file may keep dO under. */
const outputGradientNames = ['dout', 'do'] as const;

/** The `<file>[:<tensor>]` of dO: from an option, else the problem's own; undefined if there is neither. */
export function outputGradientArgument(file: TensorFile, named?: string): string | undefined {
  const own = outputGradientNames.find((name) => file.entries.has(name));
  return named ?? (own === undefined ? undefined : `:${own}`);
}

/**
 * Reads dO, which an option names or the problem's file has.
 * @param wants the option that needs it, as in `--backward`
 * @throws RequestError when there is none, or it cannot be read
 */
export async function readOutputGradient(
  file: TensorFile,
  { named, wants }: { readonly named: string | undefined; readonly wants: string },
  reading: TensorReading,
): Promise<SourcedTensor> {
  const argument = outputGradientArgument(file, named);
  if (argument === undefined)
    throw new RequestError(
      `${printable(file.path)}: has no tensor ${outputGradientNames.map((name) => `"${name}"`).join(' or ')}, the gradient of the output, which ${wants} begins with; give it as --dout <file>[:tensor]`,
    );
  return readTensorArgument(argument, file, outputGradient, reading);
}

/** Places of the gradients of a request: `<file>[:<tensor>]` by quantity. */
export interface GradientPlaces {
  readonly dout: string;
  readonly gradients: Readonly<Partial<Record<string, string>>>;
}

/** The gradients that a request names, by name. */
function namedGradients(places: TensorPlaces): GradientPlaces['gradients'] {
  const named = judgedGradients.flatMap(({ name, option }) => {
    const argument = places[option];
    return argument === undefined ? [] : [[name, argument] as const];
  });
  return Object.fromEntries(named);
}

/**
 * The gradients to judge: those that options name, or all of the problem's file if no output is named or made
 * elsewhere; null if there are none, or no dO to judge them by.
 * @throws RequestError for a gradient that is named without dO, and for dO that is named without a gradient
 */
export function gradientPlaces(file: TensorFile, places: TensorPlaces): GradientPlaces | null {
  const named = namedGradients(places);
  const isNamed = Object.keys(named).length > 0;
  const own = judgedGradients
    .filter(({ name }) => file.entries.has(name))
    .map(({ name }) => [name, `:${name}`] as const);
  const gradients =
    isNamed || (places.output !== undefined && places.dout === undefined)
      ? named
      : Object.fromEntries(own);
  const dout = outputGradientArgument(file, places.dout);
  const wanted = Object.keys(gradients);
  if (dout !== undefined && wanted.length > 0) return { dout, gradients };
  if (isNamed)
    throw new RequestError(
      `${printable(file.path)}: ${wanted.join(', ')} ${wanted.length === 1 ? 'is' : 'are'} to be judged, but there is no gradient of the output; give it as --dout <file>[:tensor]`,
    );
  if (places.dout !== undefined)
    throw new RequestError(
      `--dout names the gradient of the output, but there is none to judge; give ${judgedGradients.map(({ option }) => `--${option}`).join(', ')}`,
    );
  return null;
}

/** Whether to judge the output that comes with the gradients too. */
export function hasOutput(file: TensorFile, places: TensorPlaces): boolean {
  return places.output !== undefined || file.entries.has(output.name);
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
  { dout, gradients }: GradientPlaces,
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
  places: TensorPlaces,
  reading: TensorReading,
): Promise<SourcedTensor | null> {
  const { name, option } = logSumExp;
  const argument = places[option] ?? (file.entries.has(name) ? `:${name}` : null);
  return argument === null ? null : readTensorArgument(argument, file, logSumExp, reading);
}
