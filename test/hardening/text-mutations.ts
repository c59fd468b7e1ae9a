import { hostileTexts } from './hostile-values.js';
import type { Random } from './random.js';

/** Strings, words, numbers and marks of JSON and of Python literals. */
const tokenPattern = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[-+\w.]+|[^\s\w]/gsu;

/** How a text is torn: from a token on, given all tokens. */
type TokenChange = (
  tokens: string[],
  at: number,
  random: Random,
  values: readonly string[],
) => void;

/** The end of the value that begins at a token: behind its closing mark, or the token itself. */
function valueEnd(tokens: readonly string[], at: number): number {
  let depth = 0;
  for (let end = at; end < tokens.length; end++) {
    if ('{[('.includes(tokens[end])) depth++;
    if ('}])'.includes(tokens[end])) depth--;
    if (depth <= 0) return end + 1;
  }
  return tokens.length;
}

const changes: readonly TokenChange[] = [
  (tokens, at, random, values) => void tokens.splice(at, 1, random.pick(values)),
  (tokens, at, random, values) =>
    void tokens.splice(at, valueEnd(tokens, at) - at, random.pick(values)),
  (tokens, at) => void tokens.splice(at, 1),
  (tokens, at) => void tokens.splice(at, valueEnd(tokens, at) - at),
  // A member, or an item, twice.
  (tokens, at) => void tokens.splice(at, 0, ...tokens.slice(at, valueEnd(tokens, at + 2)), ','),
  (tokens, at, random) => {
    const other = random.below(tokens.length);
    [tokens[at], tokens[other]] = [tokens[other], tokens[at]];
  },
  (tokens, at, random) => {
    const depth = random.pick([1, 33, 65, 5000]);
    tokens[at] = `${'['.repeat(depth)}${tokens[at]}${']'.repeat(depth)}`;
  },
  (tokens, at, random) => void tokens.splice(at, 0, ' '.repeat(random.pick([1, 1000, 70_000]))),
  (tokens, at, random) => {
    const quote = tokens[at][0] === "'" ? "'" : '"';
    tokens[at] = `${quote}${random.pick(hostileTexts)}${quote}`;
  },
];

/**
 * The text with one to three of its tokens (or whole values) replaced, taken out, repeated, swapped,
 * nested or spread.
 * @param values what may stand in a token's place
 */
export function mutatedText(text: string, random: Random, values: readonly string[]): string {
  const tokens = text.match(tokenPattern) ?? [];
  for (let change = random.below(3); change >= 0 && tokens.length > 0; change--)
    random.pick(changes)(tokens, random.below(tokens.length), random, values);
  return tokens.join(random.chance(0.5) ? '' : ' ');
}
