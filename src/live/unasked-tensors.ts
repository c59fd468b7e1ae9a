import type { TensorFile } from '../io/index.js';
import { quantities, type Quantity } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { nearestName } from '../words/index.js';

/**
 * The names of tensors that a kernel wrote and that nothing reads, in the order of its file.
 * @param known all quantities
 * @throws RequestError for a name that looks like a misspelt quantity that is missing: it would go unjudged
 */
export function unaskedTensors(
  { entries }: Pick<TensorFile, 'entries'>,
  known: readonly Quantity[] = quantities,
): readonly string[] {
  const names = known.map(({ name }) => name);
  const missing = names.filter((name) => !entries.has(name));
  const unasked = [...entries.keys()].filter((name) => !names.includes(name));
  for (const name of unasked) {
    const meant = nearestName(name, missing);
    if (meant !== null)
      throw new RequestError(
        `it holds ${JSON.stringify(name)} and no ${JSON.stringify(meant)}; call it so, or leave it out`,
      );
  }
  return unasked;
}
