import { formatGrouped } from '../../words/index.js';
import { sourceText } from '../launch/launch-findings.js';
import type { CertificatePlace } from './certificate.js';

/** Places that a reader takes for one: of the same instruction, at one line of the source or near one another. */
export interface PlaceGroup {
  readonly first: CertificatePlace;
  readonly mnemonic: string;
  readonly lines: readonly number[];
  readonly amount: number;
}

/** Lines of the PTX apart at which two places of an instruction are no longer near one another. */
const nearLines = 40;

/** `line 120: fma.rn.f32` in its parts. */
function partsOf({ site }: CertificatePlace): { readonly line: number; readonly mnemonic: string } {
  const [, line = '0', mnemonic = site] = /^line (\d+): (.*)$/.exec(site) ?? [];
  return { line: Number(line), mnemonic };
}

/** The order of places: by launch, then by line. */
function inOrder(one: CertificatePlace, other: CertificatePlace): number {
  const launches = (one.launch ?? 0) - (other.launch ?? 0);
  return launches === 0 ? partsOf(one).line - partsOf(other).line : launches;
}

/** Groups places, which have amounts, by instruction and source, or by neighbourhood; the largest amounts first. */
export function groupPlaces<Place extends CertificatePlace>(
  places: readonly Place[],
  amountOf: (place: Place) => number,
): readonly PlaceGroup[] {
  const groups: PlaceGroup[] = [];
  for (const place of [...places].sort(inOrder)) {
    const { line, mnemonic } = partsOf(place);
    const source = place.source === null ? null : sourceText(place.source);
    const at = groups.findIndex(
      (group) =>
        group.mnemonic === mnemonic &&
        group.first.launch === place.launch &&
        (source === null
          ? group.first.source === null && line - group.lines[group.lines.length - 1] <= nearLines
          : group.first.source !== null && sourceText(group.first.source) === source),
    );
    const known = groups[at] ?? { first: place, mnemonic, lines: [], amount: 0 };
    const amount = known.amount + amountOf(place);
    groups[at < 0 ? groups.length : at] = { ...known, lines: [...known.lines, line], amount };
  }
  return groups.sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));
}

/** "kernel.py:88: cvt.rn.bf16x2.f32, 16 lines from 1060 on", or the line alone. */
export function groupText({ first, mnemonic, lines }: PlaceGroup): string {
  const [from] = lines;
  const where =
    lines.length === 1
      ? `line ${from}`
      : `${formatGrouped(lines.length)} lines, ${from} to ${lines[lines.length - 1]}`;
  const launch = first.launch === null ? '' : `launch ${first.launch}: `;
  return first.source === null
    ? `${launch}${mnemonic}, ${where}`
    : `${launch}${sourceText(first.source)}: ${mnemonic}, ${where}`;
}
