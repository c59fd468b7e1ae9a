/**
 * The index of the documentation's search, mended. lunr joins the ends of words that it takes for the same by names that digits
 * make ambiguous, so that it finds words which no page has, and ends in an error. Those words are put into the index, with no
 * page behind them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';

// The release that the pages search with is TypeDoc's own.
const lunr = createRequire(import.meta.resolve('typedoc'))('lunr');

/** Words that lunr finds in an index and that it does not have. */
export function ghostsOf(index) {
  // The names are numbers, counted from here in a page too.
  lunr.TokenSet._nextId = 1;
  const known = new Set(index.invertedIndex.map(([word]) => word));
  return lunr.Index.load(index)
    .tokenSet.toArray()
    .filter((word) => !known.has(word));
}

/** Puts words without pages into an index until lunr finds no others. */
export function mendIndex(index) {
  const nowhere = Object.fromEntries(index.fields.map((field) => [field, {}]));
  for (let ghosts = ghostsOf(index); ghosts.length > 0; ghosts = ghostsOf(index)) {
    let next = index.invertedIndex.length;
    for (const word of ghosts)
      index.invertedIndex.push([word, { _index: next++, ...structuredClone(nowhere) }]);
    index.invertedIndex.sort(([a], [b]) => (a < b ? -1 : 1));
  }
  return index;
}

/** Mends the index in the folder of a site that has been rendered. */
export function mendSearch(folder) {
  const path = join(folder, 'assets/search.js');
  const script = readFileSync(path, 'utf8');
  const [, packed] = /"([^"]+)"/.exec(script);
  const data = JSON.parse(inflateSync(Buffer.from(packed, 'base64')).toString());
  mendIndex(data.index);
  const mended = deflateSync(Buffer.from(JSON.stringify(data))).toString('base64');
  writeFileSync(path, script.replace(packed, mended));
}
