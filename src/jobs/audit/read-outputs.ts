import { decodeToFloat64, encodeFromFloat64, formats } from '../../formats/index.js';
import type { JudgedGradientName, KernelOutputs } from '../../audit/index.js';
import {
  openTensorArgument,
  outputRename,
  toHeadsFirst,
  type TensorFile,
} from '../../io/tensors/index.js';
import {
  gatherOutput,
  quantities,
  type Problem,
  type Quantity,
  type Tensor,
  type WrittenOutputs,
} from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';

type PlaceName =
  (typeof quantities)[number]['option'] | 'dout' | JudgedGradientName | 'outPartial' | 'lsePartial';

/** Places of tensors, each `<file>[:<tensor>]`; one that is not named may be the problem file's own of that name. */
export type TensorPlaces = { readonly [Name in PlaceName]?: string | undefined };

/** A tensor to judge, and its source. */
export interface SourcedTensor {
  readonly tensor: Tensor;
  readonly source: TensorSource;
}

/** Settings for reading the tensors of a problem's file, and those beside it. */
export interface TensorReading {
  /** Whether an output is [batch, heads, seqlen, dim], as the problem is. */
  readonly headsFirst: boolean;
  /** The problem; outputs of packed sequences have the layout of its queries. */
  readonly problem: Problem;
}

/**
 * An output in its canonical shape.
 * @throws RequestError for a shape that an output of packed sequences cannot have
 */
export function canonicalOutput(
  tensor: Tensor,
  quantity: Quantity,
  { headsFirst, problem }: TensorReading,
): Tensor {
  if (problem.sequences !== undefined) return gatherOutput(problem, quantity, tensor);
  return quantity.row === 'vector' && !headsFirst ? toHeadsFirst(tensor) : tensor;
}

/**
 * Reads the tensor that `<file>[:<tensor>]` names, in its stored layout.
 * @param fallback its name if only a file is named, which holds several tensors
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function readStoredArgument(
  argument: string,
  problemFile: TensorFile,
  fallback: string,
): Promise<SourcedTensor> {
  const chosen = await openTensorArgument(argument, problemFile, fallback);
  try {
    const tensor = await chosen.file.read(chosen.name);
    const storedAs = chosen.file.entries.get(chosen.name)?.storedAs;
    return {
      tensor,
      source: {
        path: chosen.file.path,
        tensor: chosen.name,
        sha256: await chosen.file.sha256(chosen.name),
        format: tensor.format,
        ...(storedAs !== undefined && { storedAs }),
      },
    };
  } finally {
    await chosen.close();
  }
}

/**
 * Reads the tensor that `<file>[:<tensor>]` names; an output in the layout of the problem becomes [batch, heads,
 * seqlen, dim].
 *
 * @param quantity its quantity, whose name it has if only a file is named, which holds several tensors
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function readTensorArgument(
  argument: string,
  problemFile: TensorFile,
  quantity: Quantity,
  reading: TensorReading,
): Promise<SourcedTensor> {
  const { name } = quantity;
  const { tensor, source } = await readStoredArgument(argument, problemFile, name);
  return { tensor: canonicalOutput(tensor, quantity, reading), source };
}

/** Outputs to judge, and their sources. */
export interface JudgedOutputs {
  readonly outputs: KernelOutputs;
  readonly sources: WrittenOutputs<TensorSource>;
  /** Names of the other tensors that a live kernel wrote, which nothing reads; default none. */
  readonly unasked?: readonly string[];
}

/** Tensors with their sources. */
export type SourcedOutputs = WrittenOutputs<SourcedTensor>;

/** Separates outputs from their sources. */
export function judgedOutputs(read: SourcedOutputs): JudgedOutputs {
  const each = <T>(part: (sourced: SourcedTensor) => T) =>
    Object.fromEntries(
      Object.entries(read).map(([name, sourced]) => [name, sourced && part(sourced)]),
    ) as unknown as WrittenOutputs<T>;
  return { outputs: each(({ tensor }) => tensor), sources: each(({ source }) => source) };
}

/** The places of the outputs that are named, by quantity. */
export function namedOutputs(places: TensorPlaces): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(quantities.map(({ name, option }) => [name, places[option]]));
}

/** The options that name outputs which a file has under other names, and which no option names; none where it has a first one of its own. */
export function outputRenames(
  file: TensorFile,
  named: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  if (named['out'] !== undefined) return [];
  return quantities.flatMap(({ name, option }) => {
    const rename = named[name] === undefined ? outputRename(file, name, option) : null;
    return rename === null ? [] : [rename];
  });
}

/** How an output is named: by the tensor that is likely it, where the file has one. */
function namingOf(
  { option }: Quantity,
  file: TensorFile,
  named: Readonly<Record<string, string | undefined>>,
): string {
  const renames = outputRenames(file, named);
  return renames.some((flags) => flags.startsWith(`--${option} `))
    ? `add ${renames.join(' ')}, if ${renames.length === 1 ? 'that is it' : 'those are they'}`
    : `name the kernel's output with --${option} <file>[:tensor]`;
}

/**
 * The outputs that options name, or the problem file's own tensors with their names: all of them if the
 * first is not named either.
 * @param named the `<file>[:<tensor>]` of each quantity, by quantity
 * @param known the possible quantities
 * @throws RequestError when there are none, or they cannot be read
 */
export async function readOutputs(
  file: TensorFile,
  named: Readonly<Record<string, string | undefined>>,
  reading: TensorReading,
  known: readonly Quantity[] = quantities,
): Promise<JudgedOutputs> {
  const [main] = known;
  const isOwn = named[main.name] === undefined;
  if (isOwn && !file.entries.has(main.name))
    throw new RequestError(
      `${file.path}: has no tensor "${main.name}" to judge; ${namingOf(main, file, named)}, or run the kernel with --exec`,
    );
  const read: Record<string, SourcedTensor | null> = {};
  for (const quantity of known) {
    const { name } = quantity;
    const argument = named[name] ?? (isOwn && file.entries.has(name) ? `:${name}` : null);
    read[name] =
      argument === null ? null : await readTensorArgument(argument, file, quantity, reading);
  }
  return judgedOutputs(read as unknown as SourcedOutputs);
}

/**
 * LSEs in base 2 as natural logarithms, rounded as a kernel that gives these rounds: times ln 2, in their format.
 * @throws RequestError for a format shorter than fp32, whose rounding would count twice, and for another base
 */
export function naturalLse(lse: Tensor, base: string | undefined): Tensor {
  if (base === undefined || base === 'e') return lse;
  if (base !== '2') throw new RequestError(`--lse-base is ${JSON.stringify(base)}; give e or 2`);
  const format = formats[lse.format];
  if (format.precision < formats.fp32.precision)
    throw new RequestError(
      `--lse-base 2 converts LSEs in fp32 and fp64, and this one is in ${lse.format}; dump it in fp32`,
    );
  const values = decodeToFloat64(lse.data, format).map((x) => x * Math.LN2);
  return { ...lse, data: encodeFromFloat64(format, values) };
}
