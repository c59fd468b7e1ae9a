import { auditPrologue, type JudgedPart } from '../../../audit/index.js';
import type { LinkFile } from '../../../io/tensors/index.js';
import type { Prologue } from '../../../problem/index.js';
import { positive } from './cache-factors.js';
import type { LinkReader } from './link-reader.js';
import { oneOf } from './one-of.js';
import {
  prologueNotes,
  prologueRounding,
  readInput,
  readNorm,
  readRotary,
} from './prologue-notes.js';

const partNames = ['q', 'k', 'v'] as const;

/** The names of tensors and settings of a prologue. */
const names = {
  tensors: [
    ...partNames,
    ...partNames.map((name) => `${name}_out`),
    ...['positions', 'token_sequences', 'cu_seqlens_q', 'rope_cos', 'rope_sin'],
    ...['q_norm_gain', 'k_norm_gain'],
  ],
  notes: [...prologueNotes, 'order', 'softmax_scale'],
} as const;

/** What is done to q or k; null where it is nothing, as to v. */
async function readPart(file: LinkFile, name: (typeof partNames)[number]): Promise<JudgedPart> {
  const input = await readInput(file, name);
  const output = await readInput(file, `${name}_out`);
  if (String(output.shape) !== String(input.shape))
    return file.refuse(
      `${name}_out has shape [${output.shape.join(', ')}], and ${name} [${input.shape.join(', ')}]; make them fit`,
    );
  const { format } = output;
  if (format !== 'fp32' && format !== 'bf16' && format !== 'fp16')
    return file.refuse(`${name}_out is ${format}; give it in fp32, bf16 or fp16`);
  const judged = { name, input, output: { ...output, format } };
  if (name === 'v') return { ...judged, prologue: null };
  const prologue: Prologue = {
    norm: await readNorm(file, `${name}_norm_gain`, input),
    rotary: await readRotary(file, input),
    rounding: prologueRounding(file),
    order: file.note('order', oneOf(['norm-rope', 'rope-norm'] as const)) ?? 'norm-rope',
    factor: (name === 'q' ? file.note('softmax_scale', positive) : undefined) ?? 1,
  };
  return { ...judged, prologue };
}

/** Settings in words. */
function wordsOf(parts: readonly JudgedPart[]): string[] {
  const [{ prologue }] = parts;
  if (prologue === null) return [];
  const { norm, rotary, order, factor = 1, rounding } = prologue;
  const scale = factor === 1 ? [] : [`q times ${factor}`];
  return [
    ...(norm === null
      ? []
      : [
          `RMS norm with epsilon ${norm.epsilon}${norm.format === undefined ? '' : `, rounded to ${norm.format}`}`,
        ]),
    ...(rotary === null
      ? []
      : [
          `rotation of ${rotary.layout}${rotary.made === undefined ? '' : `, base ${rotary.made.frequencies.base}`}`,
        ]),
    ...(norm !== null && rotary !== null && order === 'rope-norm' ? ['the norm last'] : []),
    ...scale,
    ...(rounding === 'fp32' ? [] : [`rounded to ${rounding} on the way`]),
  ];
}

/**
 * The tensors of a prologue that a file poses, those with both ends.
 * @throws RequestError for a file that holds none, or says nothing of what is done to them
 */
export async function readPrologueParts(file: LinkFile): Promise<readonly JudgedPart[]> {
  const given = partNames.filter((name) => file.has(name) && file.has(`${name}_out`));
  if (given.length === 0)
    return file.refuse('has neither q with q_out nor k with k_out; name them with --tensor');
  const parts: JudgedPart[] = [];
  for (const name of given) parts.push(await readPart(file, name));
  const isNothing = parts.every(
    ({ prologue }) =>
      prologue === null ||
      (prologue.norm === null && prologue.rotary === null && prologue.factor === 1),
  );
  if (isNothing)
    file.refuse(
      'nothing says what is done to q and k; give norm_epsilon, rope_cos and rope_sin or rope_base, or softmax_scale',
    );
  return parts;
}

/** The contract of a prologue as files pose it: q, k and v as a kernel read them, and as it left them. */
export const prologueLink: LinkReader = {
  names,
  judge: async (file) => {
    const parts = await readPrologueParts(file);
    return auditPrologue({ parts, words: wordsOf(parts) });
  },
};
