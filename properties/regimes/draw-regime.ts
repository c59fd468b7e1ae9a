import { decodeProblem, encodeProblem, type PlainProblem } from '../plain-problem.js';
import type { RegimeRequest } from './regime.js';
import { regimes, type RegimeName } from './regimes.js';

/**
 * Draws of one problem at most; the last is taken as it is. At the sizes that regimes ask for, at
 * least every second draw hits, so that this many never miss.
 */
const mostDraws = 64;

/** What of a problem a regime does not draw; the scale counts where the regime has none of its own. */
export type RegimeFrame = Pick<PlainProblem, 'scale' | 'causal' | 'window' | 'softcap'>;

/**
 * A problem of a regime, in the frame, its tensors rounded to the format (to nearest even, magnitudes
 * beyond the largest finite number to that); drawn again while `holds` denies it.
 * @throws RequestError for sizes that the regime cannot be made of
 */
export function drawRegime(
  name: RegimeName,
  request: RegimeRequest,
  frame: RegimeFrame,
): PlainProblem {
  const regime = regimes[name];
  const { name: format } = request.format;
  for (let draws = 1; ; draws++) {
    const { scale = frame.scale, ...values } = regime.draw(request);
    const plain = decodeProblem(
      encodeProblem({
        ...frame,
        sizes: request.sizes,
        formats: { q: format, k: format, v: format },
        values,
        scale,
      }),
    );
    if (draws === mostDraws || regime.holds(plain, request.tiling)) return plain;
  }
}
