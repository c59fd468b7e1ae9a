import type { Tensor } from '../../../formats/index.js';
import {
  arrangeRecurrent,
  printable,
  quoted,
  recurrentTensor,
  type ReadRecurrence,
  type RecurrentRows,
  type TensorFile,
} from '../../../io/tensors/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentTensorName,
  type RecurrentFamily,
  type RecurrentGradientInputs,
  type RecurrentResults,
} from '../../../problem/index.js';
import type { TensorSource } from '../../../report/json/index.js';
import { RequestError } from '../../../request-error.js';
import { readStoredArgument } from '../read-outputs.js';

type ResultOption = (typeof recurrentQuantities)[keyof typeof recurrentQuantities]['option'];

/** Places of the results of a kernel of linear attention, each `<file>[:<tensor>]`. */
export type RecurrentPlaces = { readonly [Name in ResultOption]?: string | undefined } & {
  /** The prefix of all results, `chunk` of `chunk.out`, with a file and a colon in front of it where that is not the problem's. */
  readonly results?: string | undefined;
  readonly dout?: string | undefined;
  readonly dfinalState?: string | undefined;
};

/** Results of a kernel of linear attention with what its gradients began with, and the sources of all. */
export interface ReadResults {
  readonly results: RecurrentResults;
  readonly gradientInputs: RecurrentGradientInputs | undefined;
  readonly sources: Readonly<Record<string, TensorSource>>;
  /** Names of gradients that were not read, for lack of dO. */
  readonly withoutInputs: readonly string[];
}

/** Prefixes in front of a result's name that a file has, as in "chunk". */
function prefixesOf({ entries }: TensorFile, family: RecurrentFamily): string[] {
  const ends = recurrentQuantityNames.map((name) => `.${recurrentTensorName(family, name)}`);
  const found = [...entries.keys()].flatMap((name) =>
    ends.filter((end) => name.endsWith(end)).map((end) => name.slice(0, -end.length)),
  );
  return [...new Set(found)].filter((prefix) => prefix !== '');
}

/** @throws RequestError that says how to name the results */
function rejectNothing(file: TensorFile, family: RecurrentFamily): never {
  const prefixes = prefixesOf(file, family);
  const some =
    prefixes.length === 0
      ? 'name them with --output <file>[:tensor], --final-state and so on'
      : `give ${prefixes.map((prefix) => `--results ${printable(prefix)}`).join(' or ')}`;
  throw new RequestError(
    `${printable(file.path)}: has no tensor ${recurrentQuantityNames.map((name) => quoted(recurrentTensorName(family, name))).join(', ')} to judge; ${some}`,
  );
}

/** The results under a prefix, as `<file>:<tensor>` by name. @throws RequestError where there are none */
async function prefixedPlaces(
  file: TensorFile,
  results: string,
  family: RecurrentFamily,
): Promise<Partial<Record<string, string>>> {
  const colon = results.lastIndexOf(':');
  const path = colon < 0 ? '' : results.slice(0, colon);
  const word = results.slice(colon + 1);
  const prefix = word === '' ? '' : `${word}.`;
  const source = path === '' ? file : await file.beside.open(path, {});
  try {
    const found = recurrentQuantityNames.flatMap((name) => {
      const tensor = recurrentTensor(source, name, { family, prefix });
      return tensor === null ? [] : [[name, `${path}:${tensor}`] as const];
    });
    if (found.length > 0) return Object.fromEntries(found);
    const known = prefixesOf(source, family);
    throw new RequestError(
      `${printable(source.path)}: has no result under --results ${quoted(results)}; ${known.length === 0 ? 'name results with --output, --final-state and so on' : `there are ${known.map(printable).join(', ')}`}`,
    );
  } finally {
    if (source !== file) await source.close();
  }
}

/** The places of the results to judge, by name. @throws RequestError where there are none */
async function resultPlaces(
  file: TensorFile,
  places: RecurrentPlaces,
  family: RecurrentFamily,
): Promise<Partial<Record<string, string>>> {
  const named = Object.fromEntries(
    recurrentQuantityNames.flatMap((name) => {
      const place = places[recurrentQuantities[name].option];
      return place === undefined ? [] : [[name, place] as const];
    }),
  );
  if (places.results !== undefined)
    return { ...(await prefixedPlaces(file, places.results, family)), ...named };
  if (Object.keys(named).length > 0) return named;
  const own = recurrentQuantityNames.flatMap((name) => {
    const tensor = recurrentTensor(file, name, { family });
    return tensor === null ? [] : [[name, `:${tensor}`] as const];
  });
  return own.length === 0 ? rejectNothing(file, family) : Object.fromEntries(own);
}

/** @throws RequestError for a tensor that has another shape than its quantity */
function checkShape(
  what: string,
  { shape }: Tensor,
  wanted: readonly number[],
  lies: string,
): void {
  if (String(shape) !== String(wanted))
    throw new RequestError(
      `${what} has shape [${shape.join(', ')}] as ${lies}, but the problem asks for [${wanted.join(', ')}]; pass the matching tensor, or say how it lies: --layout, --state-layout`,
    );
}

/** Reads a tensor of some rows that has to have a shape, and keeps its source under a name. */
type Read = (
  place: string,
  name: string,
  of: RecurrentRows,
  wanted: readonly number[],
) => Promise<Tensor>;

/** A reader of tensors that lie as the problem's do. @param sources gets the source of each */
function reader(
  file: TensorFile,
  { arrangement }: ReadRecurrence,
  sources: Record<string, TensorSource>,
): Read {
  return async (place, name, of, wanted) => {
    const { tensor, source } = await readStoredArgument(place, file, name);
    const arranged = arrangeRecurrent(tensor, of, arrangement);
    const lies = {
      tokens: '[batch, tokens, heads, …]',
      states: '[sequences, heads, key dim, value dim]',
      heads: '[heads, …]',
    }[of];
    checkShape(
      `${printable(source.path)}: tensor ${quoted(source.tensor)}`,
      arranged,
      wanted,
      lies,
    );
    sources[name] = source;
    return arranged;
  };
}

/** The place of an input of gradients: named, else the problem file's own; undefined where there is none. */
function inputPlace(
  file: TensorFile,
  name: string,
  family: RecurrentFamily,
  named: string | undefined,
): string | undefined {
  const own = recurrentTensor(file, name, { family });
  return named ?? (own === null ? undefined : `:${own}`);
}

async function readGradientInputs(
  read: Read,
  dout: string,
  dfinalState: string | undefined,
  { problem, shape }: ReadRecurrence,
): Promise<RecurrentGradientInputs> {
  const { sequences, valueHeads, keyDim, valueDim } = shape;
  const states = [sequences.length, valueHeads, keyDim, valueDim];
  return {
    dout: await read(dout, 'dout', 'tokens', problem.v.shape),
    ...(dfinalState !== undefined && {
      dfinalState: await read(dfinalState, 'dfinal_state', 'states', states),
    }),
  };
}

/** What gradients begin with, and its sources. */
export interface ReadGradientInputs {
  /** Undefined where there is no dO. */
  readonly gradientInputs: RecurrentGradientInputs | undefined;
  readonly sources: Readonly<Record<string, TensorSource>>;
}

/**
 * Reads what the gradients of a kernel begin with: dO that --dout names, else that of the problem's file, and dS_T with it.
 * @throws RequestError where they do not fit the problem
 */
export async function readKernelGradientInputs(
  file: TensorFile,
  places: RecurrentPlaces,
  of: ReadRecurrence,
): Promise<ReadGradientInputs> {
  const { family } = of.problem;
  const sources: Record<string, TensorSource> = {};
  const dout = inputPlace(file, 'dout', family, places.dout);
  const last = inputPlace(file, 'dfinal_state', family, places.dfinalState);
  const gradientInputs =
    dout === undefined
      ? undefined
      : await readGradientInputs(reader(file, of, sources), dout, last, of);
  return { gradientInputs, sources };
}

/**
 * Reads the results to judge: those that options name, those under a prefix, else those of the problem's file.
 * @throws RequestError where there are none, or they do not fit the problem
 */
export async function readResults(
  file: TensorFile,
  places: RecurrentPlaces,
  of: ReadRecurrence,
): Promise<ReadResults> {
  const { problem, shape } = of;
  const refuse = (what: string): never => {
    throw new RequestError(`${printable(file.path)}: ${what}`);
  };
  const sources: Record<string, TensorSource> = {};
  const read = reader(file, of, sources);
  const found = await resultPlaces(file, places, problem.family);
  const dout = inputPlace(file, 'dout', problem.family, places.dout);
  const results: Partial<Record<string, Tensor>> = {};
  const withoutInputs: string[] = [];
  for (const name of recurrentQuantityNames) {
    const place = found[name];
    if (place === undefined) continue;
    const { of: rows, isGradient, option } = recurrentQuantities[name];
    const wanted = recurrentQuantityShape(name, problem, shape);
    if (wanted === null)
      return refuse(
        `there is ${name} to judge, which ${problem.family} here has not; leave it out`,
      );
    if (!isGradient || dout !== undefined) results[name] = await read(place, name, rows, wanted);
    else if (places[option] === undefined) withoutInputs.push(name);
    else
      refuse(
        `${name} is to be judged, but there is no gradient of the output; give it as --dout <file>[:tensor]`,
      );
  }
  const judged = Object.keys(results);
  if (judged.length === 0)
    refuse('has gradients alone, and no gradient of the output; give it as --dout <file>[:tensor]');
  const hasGradients = judged.some((name) => name.startsWith('d'));
  const last = inputPlace(file, 'dfinal_state', problem.family, places.dfinalState);
  const gradientInputs =
    dout === undefined || !hasGradients
      ? undefined
      : await readGradientInputs(read, dout, last, of);
  return { results, gradientInputs, sources, withoutInputs };
}
