import { formats, round, type FormatName } from '../../formats/index.js';
import type { Diagnosis } from '../diagnosis/index.js';
import type { GivenQuantity } from '../kernel-outputs.js';

/** The short formats that every output of a long one is a number of. */
function narrowerFormats(out: Float64Array, format: FormatName): readonly FormatName[] {
  if (formats[format].precision < formats.fp32.precision) return [];
  if (out.every((x) => x === 0)) return [];
  return (['bf16', 'fp16'] as const).filter((name) =>
    out.every((x) => Object.is(round(formats[name], x), x)),
  );
}

/**
 * The number of different outputs from which on it is no accident that they are numbers of a short format where the exact ones
 * are not.
 */
const fewestWidened = 4;

/** The error of the whole output, in units of a short format's roundoff, beyond which a kernel of that format is wrong as well. */
const mostRoundoffs = 16;

/** Whether the errors are no larger than a kernel makes that computes in a format. */
function errsAsIn(format: FormatName, out: Float64Array, exact: Float64Array): boolean {
  let [errors, values] = [0, 0];
  for (let i = 0; i < out.length; i++) {
    if (!Number.isFinite(exact[i])) continue;
    errors += (out[i] - exact[i]) ** 2;
    values += exact[i] ** 2;
  }
  return Math.sqrt(errors / values) <= mostRoundoffs * 2 ** -formats[format].precision;
}

/**
 * The cause of a failure where roundings to a shorter format are errors of the longer one; null where there is no shorter one that
 * the output has been widened from, where the exact values might be numbers of it, and where it has larger errors.
 */
export function widenedCause(
  { values: out, format }: Pick<GivenQuantity, 'values' | 'format'>,
  exact: Float64Array,
): Diagnosis | null {
  const [from] = narrowerFormats(out, format);
  if (from === undefined || !errsAsIn(from, out, exact)) return null;
  const others = new Set<number>();
  for (let i = 0; i < out.length && others.size < fewestWidened; i++) {
    const stored = round(formats[format], exact[i]);
    if (Number.isFinite(stored) && !Object.is(round(formats[from], stored), stored))
      others.add(out[i]);
  }
  if (others.size < fewestWidened) return null;
  return {
    id: 'output-widened',
    equivalents: [],
    technique: 'output-round',
    place: null,
    candidates: [],
    sentence: `the output is widened: a tensor in ${format} whose values are all numbers of ${from}; dump it in its own format`,
    evidence: [],
  };
}

/** Says so where every output of a long format is a number of a short one. */
export function narrowerNotes(out: Float64Array, format: FormatName): string[] {
  const narrow = narrowerFormats(out, format);
  if (narrow.length === 0) return [];
  return [
    `every ${format} output is a number of ${narrow.join(' and of ')}: the kernel rounds to that, or something after it does; dump the output in its own format`,
  ];
}
