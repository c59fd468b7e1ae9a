import type { Tensor } from '../../../formats/index.js';
import { usualStepLimit, type Mamba2Inputs } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable, quoted, tensorIn } from '../messages.js';
import { parseBoolean } from '../problem/settings.js';
import type { TensorFile } from '../tensor-file.js';
import { noted, type RecurrentSettings } from './settings.js';

/** The names of the tensors of Mamba-2 beside C, B, x and states, as mamba_ssm has them. */
export const mamba2Tensors = ['dt', 'A', 'D', 'z', 'dt_bias'] as const;

/** The limits of Δ as text, `0.001,0.1` with or without brackets. @throws RequestError for other text */
function parseStepLimit(text: string, name: string): readonly [number, number] {
  const numbers = text
    .trim()
    .replace(/^[[(](.*)[\])]$/s, '$1')
    .split(',')
    .map((part) => (/^\s*\+?inf(inity)?\s*$/i.test(part) ? Infinity : Number(part.trim() || NaN)));
  const [least, most] = numbers;
  if (numbers.length !== 2 || !(least <= most))
    throw new RequestError(
      `${name} is ${quoted(text)}; give the least and the largest Δ, as in 0,inf`,
    );
  return [least, most];
}

/** The settings of a Mamba-2 problem that its file notes. @throws RequestError for notes that do not parse */
export function notedSteps(
  file: TensorFile,
  settings: RecurrentSettings,
): Pick<Mamba2Inputs, 'dtSoftplus' | 'dtLimit'> {
  return {
    dtSoftplus: noted(file, settings, ['dt_softplus'], parseBoolean) ?? false,
    dtLimit: noted(file, settings, ['dt_limit'], parseStepLimit) ?? usualStepLimit,
  };
}

/**
 * The inputs of Mamba-2 beside C, B and x.
 * @param tokens reads a tensor that has tokens
 * @throws RequestError when dt or A is missing, and for notes that do not parse
 */
export async function readMamba2(
  file: TensorFile,
  settings: RecurrentSettings,
  tokens: (name: string) => Promise<Tensor>,
): Promise<Mamba2Inputs> {
  const { entries } = file;
  for (const name of ['dt', 'A'])
    if (!entries.has(name))
      throw new RequestError(`${printable(file.path)}: mamba2 needs a tensor "${name}"; add it`);
  const ifThere = async (name: string, read: (name: string) => Promise<Tensor>) =>
    entries.has(name) ? read(name) : undefined;
  const whole = (name: string) => file.read(name);
  return {
    ...notedSteps(file, settings),
    dt: await tokens('dt'),
    a: await whole('A'),
    d: await ifThere('D', whole),
    z: await ifThere('z', tokens),
    dtBias: await ifThere('dt_bias', whole),
  };
}

/**
 * The ends of packed sequences of a `seq_idx`, the number of each token's sequence, of a batch of 1.
 * @throws RequestError for more batch entries, and for numbers that do not ascend
 */
export async function endsOfSequences(file: TensorFile): Promise<readonly number[]> {
  const { data, shape } = await file.readIntegers('seq_idx');
  const refuse = (what: string): never => {
    throw new RequestError(`${tensorIn(file.path, 'seq_idx')} ${what}`);
  };
  if (shape.length !== 1 && shape[0] !== 1)
    refuse(`has shape [${shape.join(', ')}]; give cu_seqlens and a batch of 1`);
  const numbers = [...data];
  if (numbers.some((one, i) => i > 0 && one < numbers[i - 1]))
    refuse('does not ascend; give the number of each token’s sequence');
  return [0, ...numbers.flatMap((one, i) => (one === numbers[i + 1] ? [] : [i + 1]))];
}
