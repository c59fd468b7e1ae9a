import { formats, type ScaleName, type Tensor } from '../../formats/index.js';
import {
  attachScales,
  liesAsElements,
  scaledTensors,
  scaleTensorName,
  type GivenScales,
  type Problem,
  type ScaledTensor,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { printable, quoted } from './messages.js';
import { openTensorArgument, ownTensor } from './problem/tensor-argument.js';
import type { TensorFile, TensorFiles } from './tensor-file.js';

/** Names of tensors and metadata of a problem file that scale q, k or v. */
export const scaleTensorNames: readonly string[] = scaledTensors.flatMap((name) =>
  (['descale', 'block_scale', 'global_scale'] as const).map((kind) => scaleTensorName(name, kind)),
);

/** Descales in other places than the problem's file: each a number, or `<file>[:<tensor>]`. */
export type GivenDescales = Readonly<Partial<Record<ScaledTensor, string>>>;

/** Whether a descale is given as a number. */
function isNumber(text: string): boolean {
  return text.trim() !== '' && !Number.isNaN(Number(text));
}

/** The names of scales in a problem's own file that are read. */
export function ownScaleNames(files: TensorFiles, given: GivenDescales = {}): readonly string[] {
  return scaleTensorNames.flatMap((label) => {
    const name = scaledTensors.find((one) => scaleTensorName(one, 'descale') === label);
    const text = name === undefined ? undefined : given[name];
    if (text === undefined) return [label];
    const own = isNumber(text) ? null : ownTensor(text, files, label);
    return own === null ? [] : [own];
  });
}

/** Settings for reading a problem's scales from a file. */
export interface ScaleReading {
  /** Descales that replace those of the file. */
  readonly given?: GivenDescales | undefined;
  /** Notes of the file, by key. */
  readonly notes: Readonly<Record<string, string>>;
  /** The rank of q, k or v in the file. */
  readonly rankOf: (name: ScaledTensor) => number;
  /**
   * Arranges factors that lie as q, k or v does in the file in the order of the problem: [batch, heads, rows, …]; null
   * for those that cannot lie so.
   */
  readonly arrange: (name: ScaledTensor, factors: Tensor) => Tensor | null;
}

function positive(text: string, where: string, isWhole: boolean): number {
  const value = Number(text);
  if (
    text.trim() === '' ||
    !(value > 0 && value < Infinity) ||
    (isWhole && !Number.isSafeInteger(value))
  )
    throw new RequestError(
      `${where} is ${quoted(text)}; give a positive ${isWhole ? 'whole' : 'finite'} number`,
    );
  return value;
}

/**
 * The problem with the scales that a file has for it: tensors `q_descale`, `q_block_scale` and `q_global_scale`, and
 * the same of k and v, or descales given in their place; block scales also as exponents (E8M0, or bytes); metadata
 * `q_descale` for a number, and `q_descale_block` for the rows that share a factor.
 * @throws RequestError for factors that do not fit or are invalid
 */
export async function readScales(
  file: TensorFile,
  problem: Problem,
  { notes, rankOf, arrange, given: elsewhere = {} }: ScaleReading,
): Promise<Problem> {
  const where = (key: string) => `${printable(file.path)}: metadata ${key}`;
  const note = (key: string, isWhole: boolean) =>
    Object.hasOwn(notes, key) ? positive(notes[key], where(key), isWhole) : undefined;
  const given: Partial<Record<ScaledTensor, GivenScales>> = {};
  for (const name of scaledTensors) {
    const rowsPerBlock = note(`${scaleTensorName(name, 'descale')}_block`, true);
    const arranged = (kind: ScaleName, tensor: Tensor): Tensor => {
      const isByBlock = kind === 'descale' && rowsPerBlock !== undefined;
      if (!liesAsElements(kind, tensor, rankOf(name), isByBlock)) return tensor;
      const found = arrange(name, tensor);
      if (found !== null) return found;
      throw new RequestError(
        `${scaleTensorName(name, kind)} has shape [${tensor.shape.join(', ')}]; give it the shape of ${name} as it is stored, with 1 or fewer where elements share a factor`,
      );
    };
    const read = async (kind: ScaleName) => {
      const label = scaleTensorName(name, kind);
      const text = kind === 'descale' ? elsewhere[name] : undefined;
      if (text !== undefined) return arranged(kind, await readGiven(file, text, label));
      if (file.entries.has(label)) return arranged(kind, await readFactors(file, label, kind));
      const number = kind === 'block_scale' ? undefined : note(label, false);
      return number === undefined ? undefined : numberTensor(number);
    };
    given[name] = {
      descale: await read('descale'),
      rowsPerBlock,
      block_scale: await read('block_scale'),
      global_scale: await read('global_scale'),
    };
  }
  try {
    return attachScales(problem, given);
  } catch (error) {
    if (error instanceof RequestError)
      throw new RequestError(`${printable(file.path)}: ${error.message}`);
    throw error;
  }
}

/** The exponent of 1, and the code of NaN. */
const [exponentBias, exponentNan] = [127, 255];

/** Factors as numbers; those that are exponents, 2^(n − 127) as MX has them, as fp32, which has them all. */
async function readFactors(file: TensorFile, label: string, kind: ScaleName): Promise<Tensor> {
  if (kind !== 'block_scale' || file.entries.get(label)?.format !== null) return file.read(label);
  const { shape, data } = await file.readIntegers(label);
  const factors = Float32Array.from(data, (n) =>
    n >= 0 && n < exponentNan ? 2 ** (n - exponentBias) : NaN,
  );
  return { format: 'fp32', shape, data: factors };
}

/** A descale that is given as a number, or as the place of a tensor. */
async function readGiven(file: TensorFile, text: string, label: string): Promise<Tensor> {
  if (isNumber(text)) return numberTensor(positive(text, `--${label.replace('_', '-')}`, false));
  const source = await openTensorArgument(text, file, label);
  try {
    return await readFactors(source.file, source.name, 'descale');
  } finally {
    await source.close();
  }
}

/** A number in a note, as fp32, which kernels take. */
function numberTensor(value: number): Tensor {
  return { format: formats.fp32.name, shape: [], data: Float32Array.of(value) };
}
