import { quoted } from '../messages.js';

/** A literal of Python source text, as npy headers hold it. */
export type PythonLiteral =
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'number'; readonly spelling: string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'tuple' | 'list'; readonly items: readonly PythonLiteral[] }
  | { readonly kind: 'dict'; readonly entries: ReadonlyMap<string, PythonLiteral> };

/** The deepest nesting of literals; a structured dtype nests four deep. */
const maxDepth = 32;

const constants = new Set(['True', 'False', 'None']);

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  n: '\n',
  t: '\t',
};

/**
 * Parses one Python literal: strings, numbers (kept as spelled, with the L of Python 2 dropped), True,
 * False and None, tuples, lists, and dicts with string keys. Nothing is evaluated, and any other syntax
 * is refused, as is a dict that has a key twice.
 * @param refuse ends the parsing; it takes the error in the text
 */
export function parsePythonLiteral(text: string, refuse: (what: string) => never): PythonLiteral {
  const token =
    /\s*(?:([{}[\]():,])|([uU]?)('|")|([-+]?[0-9][0-9A-Za-z_.]*)|([A-Za-z_]\w*)|(.))?/suy;
  let position = 0;
  let depth = 0;

  const fail = (what: string): never => refuse(`${what} at character ${position}`);

  /** The next token without taking it; its text is empty at the end. */
  const peek = (): {
    kind: 'mark' | 'quote' | 'number' | 'name' | 'end';
    text: string;
    end: number;
  } => {
    token.lastIndex = position;
    const match = token.exec(text);
    const end = token.lastIndex;
    if (match === null) return { kind: 'end', text: '', end: position };
    const [, mark, , quote, number, name, other] = match;
    if (mark !== undefined) return { kind: 'mark', text: mark, end };
    if (quote !== undefined) return { kind: 'quote', text: quote, end };
    if (number !== undefined) return { kind: 'number', text: number, end };
    if (name !== undefined) return { kind: 'name', text: name, end };
    return other === undefined ? { kind: 'end', text: '', end } : fail('unexpected character');
  };

  const take = (mark: string): boolean => {
    const next = peek();
    if (next.kind !== 'mark' || next.text !== mark) return false;
    position = next.end;
    return true;
  };

  const stringFrom = (start: number, quote: string): PythonLiteral => {
    let value = '';
    position = start;
    for (;;) {
      const character = text[position++];
      if (character === undefined || character === '\n') return fail('a string does not end');
      if (character === quote) return { kind: 'string', value };
      if (character !== '\\') value += character;
      else value += escapes[text[position++] ?? ''] ?? fail('a string holds an unknown escape');
    }
  };

  /** Reads items up to the closing mark; returns whether a comma followed the last one. */
  const items = (close: string, item: () => void): boolean => {
    if (++depth > maxDepth) fail(`nesting goes deeper than ${maxDepth}`);
    let comma = false;
    while (!take(close)) {
      item();
      comma = take(',');
      if (!comma && !take(close)) fail(`"${close}" is missing`);
      if (!comma) break;
    }
    depth--;
    return comma;
  };

  const dict = (): PythonLiteral => {
    const entries = new Map<string, PythonLiteral>();
    items('}', () => {
      const key = literal();
      if (key.kind !== 'string') return fail('a key is no string');
      if (entries.has(key.value)) fail(`key ${quoted(key.value)} occurs twice, the second time`);
      if (!take(':')) fail('":" is missing');
      entries.set(key.value, literal());
    });
    return { kind: 'dict', entries };
  };

  const sequence = (close: string): readonly [PythonLiteral[], boolean] => {
    const read: PythonLiteral[] = [];
    const comma = items(close, () => read.push(literal()));
    return [read, comma];
  };

  const literal = (): PythonLiteral => {
    const next = peek();
    if (next.kind === 'end') return fail('the text ends too early');
    if (next.kind === 'quote') return stringFrom(next.end, next.text);
    position = next.end;
    if (next.kind === 'number') return { kind: 'number', spelling: next.text.replace(/L$/, '') };
    if (next.kind === 'name')
      return constants.has(next.text)
        ? { kind: 'name', name: next.text }
        : fail(`the name ${next.text.slice(0, 40)} is not allowed`);
    if (next.text === '{') return dict();
    if (next.text === '[') return { kind: 'list', items: sequence(']')[0] };
    if (next.text !== '(') return fail(`unexpected "${next.text}"`);
    const [read, comma] = sequence(')');
    // As in Python, parentheses around one value without a comma are that value, no tuple.
    return read.length === 1 && !comma ? read[0] : { kind: 'tuple', items: read };
  };

  const value = literal();
  if (peek().kind !== 'end') fail('there is more text after the literal');
  return value;
}
