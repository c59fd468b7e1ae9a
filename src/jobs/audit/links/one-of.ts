import { quoted } from '../../../io/tensors/index.js';
import { RequestError } from '../../../request-error.js';

/** Parses a word of a list, underscores as hyphens. @throws RequestError for another */
export function oneOf<Word extends string>(words: readonly Word[]) {
  return (text: string, where: string): Word => {
    const word = words.find((known) => known === text.trim().toLowerCase().replaceAll('_', '-'));
    if (word === undefined)
      throw new RequestError(`${where} is ${quoted(text)}; give one of ${words.join(', ')}`);
    return word;
  };
}
