import { lineOfSite, type OutputCertificate, sourceText } from '../../../jobs/index.js';
import { element, join, type Html } from '../../layout/index.js';
import { lineOfPlace, type ProgramTexts, sourceLine } from './program-texts.js';

/** The shares of an output's error by places of the program. */
type Shares = NonNullable<OutputCertificate['rounding']>['shares'];

/** The least share that has a line, as in the listing of the program. */
const leastShare = 0.0005;

/** The share of a line of the source in an output's error, signed. */
interface SourceShare {
  readonly place: string;
  readonly share: number;
  /** What the line says, where its source is given; else the line of the PTX that has most of the share. */
  readonly text: string;
}

/** The instruction of a place, with its line of the PTX. */
function instructionOf(texts: ProgramTexts, place: Shares[number]): string {
  return `PTX line ${lineOfSite(place.site)}: ${lineOfPlace(texts, { ...place, source: null })}`;
}

/**
 * The shares of an output's error by lines of the kernel's own source, in their order; what is inlined counts for the line
 * that it is inlined at. Empty where the program does not say its source.
 */
export function sourceShares(shares: Shares, texts: ProgramTexts): readonly SourceShare[] {
  const lines = new Map<
    string,
    {
      readonly place: string;
      readonly order: string;
      readonly text: string;
      share: number;
      most: Shares[number];
    }
  >();
  for (const one of shares) {
    if (one.source === null) continue;
    const own = one.source.inlinedAt ?? one.source;
    const place = sourceText({ ...own, inlinedAt: null });
    const order = `${own.file}:${String(own.line).padStart(9, '0')}`;
    const text = sourceLine(texts, own.file, own.line);
    const known = lines.get(place) ?? { place, order, text, share: 0, most: one };
    known.share += one.share;
    if (Math.abs(one.share) > Math.abs(known.most.share)) known.most = one;
    lines.set(place, known);
  }
  return [...lines.values()]
    .sort((a, b) => (a.order < b.order ? -1 : 1))
    .map(({ place, share, text, most }) => ({
      place,
      share,
      text: text === '' ? instructionOf(texts, most) : text,
    }));
}

/** Those shares as bars; a share against the error is pale. Nothing where no source is known. */
export function sourceTable(name: string, shares: Shares, texts: ProgramTexts): Html {
  const lines = sourceShares(shares, texts).filter(({ share }) => Math.abs(share) >= leastShare);
  if (lines.length === 0) return join();
  const most = lines.reduce((largest, { share }) => Math.max(largest, Math.abs(share)), 0);
  const caption = `Lines of the source, with their share of the error of ${name}`;
  const row = ({ place, share, text }: SourceShare): Html =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, place),
      element('td', { class: 'number' }, `${(100 * share).toFixed(1)} %`),
      element(
        'td',
        { class: 'long', style: 'min-width:16ch' },
        element(
          'svg',
          { viewBox: '0 0 200 10', width: 130, height: 10, 'aria-hidden': 'true' },
          element('rect', {
            style: `fill:var(--${share < 0 ? 'bound' : 'found'})`,
            width: ((200 * Math.abs(share)) / (most || 1)).toFixed(1),
            height: 10,
          }),
        ),
        element('br', {}),
        element('code', {}, text),
      ),
    );
  return element(
    'div',
    { class: 'table', role: 'group', 'aria-label': caption, tabindex: 0 },
    element('table', {}, element('caption', {}, caption), element('tbody', {}, lines.map(row))),
  );
}
