/**
 * What the documentation has beside TypeDoc's own: documents by their titles, guides first in the search, tables that scroll
 * inside themselves, and outputs of commands that are not coloured as if they were a program.
 */
import { IndexEvent, MarkdownEvent, RendererEvent } from 'typedoc';

/** How much sooner than a name of the reference a document is found, by its shelf. */
const boosts = { guide: 10000, reference: 500, theory: 100 };

/** The shelf of a document, as its name begins. */
function shelfOf({ name }) {
  return name.slice(0, name.indexOf('/'));
}

/** The first heading of a document, without the marks of Markdown; its name where it has none. */
function titleOf(document) {
  const text = document.content.map((part) => part.text).join('');
  const [, heading] = /^# (.+)$/m.exec(text) ?? [];
  return heading === undefined ? null : heading.replaceAll('`', '').replaceAll('/', '∕');
}

/** Gives documents their titles as names, once their addresses are made of the names that they had. */
function nameDocuments({ project }) {
  for (const document of project.documents ?? []) {
    const title = titleOf(document);
    if (title !== null) document.name = `${shelfOf(document)}/${title}`;
  }
}

/** Documents come before names of the reference, and guides before other documents. */
function boostDocuments({ searchResults }) {
  for (const found of searchResults)
    if (found.isDocument()) found.relevanceBoost = boosts[shelfOf(found)] ?? 1;
}

/** A block that says no language is the output of a command; TypeDoc takes it for TypeScript. */
function markOutputs(event) {
  let isInside = false;
  event.parsedText = event.parsedText
    .split('\n')
    .map((line) => {
      if (!/^\s*```/.test(line)) return line;
      isInside = !isInside;
      return isInside && /^\s*```\s*$/.test(line) ? `${line.trimEnd()}text` : line;
    })
    .join('\n');
}

/** Each table in an element that scrolls, which keys reach. */
function wrapTables(event) {
  event.parsedText = event.parsedText
    .replaceAll(
      '<table>',
      '<div class="table" role="group" aria-label="Table" tabindex="0"><table>',
    )
    .replaceAll('</table>', '</table></div>');
}

/** The entry that TypeDoc calls. */
export function load({ renderer }) {
  renderer.on(RendererEvent.BEGIN, nameDocuments, 1000);
  renderer.on(IndexEvent.PREPARE_INDEX, boostDocuments);
  // Before Markdown is parsed, and after.
  renderer.on(MarkdownEvent.PARSE, markOutputs, 1000);
  renderer.on(MarkdownEvent.PARSE, wrapTables, -1000);
}
