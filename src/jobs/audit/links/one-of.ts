import { quoted } from '../../../io/tensors/index.js';
import { RequestError } from '../../../request-error.js';

/** A parser of a word of a list, in lower case and with hyphens. The parser throws a RequestError for another word. */
export function oneOf<Word extends string>(words: readonly Word[]) {
  return (text: string, where: string): Word => {
    const word = words.find((known) => known === text.trim().toLowerCase().replaceAll('_', '-'));
    if (word === undefined)
      throw new RequestError(`${where} is ${quoted(text)}; give one of ${words.join(', ')}`);
    return word;
  };
}
