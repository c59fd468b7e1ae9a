import { formatNumber, plainText } from '../../words/index.js';
import {
  sumBits,
  type GradientBits,
  type ModelMatch,
  type ReportedGradients,
} from '../json/index.js';
import { heading, type Cell, type Section } from '../layout/index.js';

const count = (n: number): string => n.toLocaleString('en-US');

function nameOf({ model, settings }: ModelMatch): string {
  const chosen = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
  return plainText([model, ...chosen].join(' '));
}

type Bits = Omit<GradientBits, 'name' | 'label'>;

function likenessText({ likeness }: Bits): string {
  if (likeness === null || likeness.misrounded === 0) return '-';
  return (likeness.equalMisrounded / likeness.misrounded).toFixed(3);
}

/**
 * One row of the table.
 * @param name name of the model; empty where it is given above
 */
function bitsRow(label: string, bits: Bits, name: string): Cell[] {
  const { equal, someOrder, undecided, noOrder } = bits;
  const counts = [equal, someOrder, undecided, noOrder].map(count);
  return [`  ${label}`, ...counts, likenessText(bits), name];
}

/**
 * The comparison of gradients with kernel models, bit for bit: the first model gradient by gradient, others with all
 * gradients together.
 * @param isFull whether others are shown gradient by gradient too
 */
export function modelMatchesSection({ models }: ReportedGradients, isFull: boolean): Section {
  const compared = models.filter(({ reason }) => reason === null);
  return {
    rows: [
      [heading('Bit for bit'), 'equal', 'by order', 'open', 'no', 'like', ''],
      ...compared.flatMap((match, i): Cell[][] => [
        bitsRow('all', sumBits(match), nameOf(match)),
        ...(i === 0 || isFull ? match.gradients.map((one) => bitsRow(one.label, one, '')) : []),
      ]),
    ],
    numberColumns: 5,
  };
}

/** The outcome of a comparison, in a sentence. */
function sentenceOf(match: ModelMatch): string {
  const name = nameOf(match);
  if (match.reason !== null) return `Not compared with ${name}: ${plainText(match.reason)}.`;
  const { elements, equal, someOrder, undecided, noOrder, likeness } = sumBits(match);
  const forward =
    match.forward === 'own'
      ? ' Its own forward pass was run first: O and LSE are not all there.'
      : '';
  if (equal === elements) return `These are the gradients of ${name}, in every bit.${forward}`;
  if (equal + someOrder === elements)
    return `These are gradients of ${name}, in every bit, by an order of its additions that is not fixed.${forward}`;
  const left = [
    ...(undecided === 0 ? [] : [`of ${count(undecided)} elements it is open`]),
    ...(noOrder === 0 ? [] : [`${count(noOrder)} differ`]),
  ].join(', ');
  const furthest =
    likeness === null ? '' : `, by ${formatNumber(likeness.largestDifference)} at most`;
  return `These are not the bits of ${name}: of ${count(elements)} elements ${left}${furthest}.${forward}`;
}

/** The outcomes of the comparisons, a sentence each: of the first, and of those that could not be made. */
export function modelMatchNotes({ models }: ReportedGradients): readonly string[] {
  return models.flatMap((match, i) =>
    i === 0 || match.reason !== null ? [sentenceOf(match)] : [],
  );
}
