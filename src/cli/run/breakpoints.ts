import type { RunRequest } from '../../jobs/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';

type Breakpoint = NonNullable<RunRequest['breaks']>[number];

const warpLanes = 32;

/** `17`, `17,40`, `17,w1`, each with `,3` for another CTA. */
const pattern = /^\s*(\d{1,9})\s*(?:,\s*(w?)(\d{1,4})\s*)?(?:,\s*(\d{1,10})\s*)?$/;

/** The breakpoint that a text names. @throws RequestError for another text */
function parseBreakpoint(text: string, times: number): Breakpoint {
  const match = pattern.exec(text);
  if (match === null)
    throw new RequestError(
      `--break is ${JSON.stringify(text)}; give <line>, <line>,<thread> or <line>,w<warp>, and ,<CTA> after it`,
    );
  const [, line, ofWarp, place = '0', cta = '0'] = match as readonly (string | undefined)[];
  const isThread = match[3] !== undefined && ofWarp === '';
  const number = Number(place);
  return {
    line: Number(line),
    cta: Number(cta),
    warp: isThread ? Math.floor(number / warpLanes) : number,
    lane: isThread ? number % warpLanes : null,
    times,
  };
}

/** The breakpoints of --break. @throws RequestError for a text that names none */
export function parseBreakpoints(texts: readonly string[], times: string): readonly Breakpoint[] {
  const most = parseWhole(times, '--break-times', 1);
  return texts.map((text) => parseBreakpoint(text, most));
}
