/**
 * What the documentation has beside TypeDoc's own: documents by their titles, entry points by the names that programs import,
 * guides first in the search and an excerpt with each result, tables that scroll inside themselves, and outputs of commands
 * that are not coloured as if they were a program.
 */
import { IndexEvent, MarkdownEvent, ReflectionKind, RendererEvent } from 'typedoc';
import { mendSearch } from './search-index.mjs';
import { writeSearchTexts } from './search-texts.mjs';

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

/** The name that a program imports an entry point by, as package.json has it; that of `src` is the package itself. */
function importedName(name) {
  const inside = name.split('/').at(-1);
  return inside === 'src' ? 'flashproof' : `flashproof∕${inside}`;
}

/** Gives documents and entry points names to be read, once their addresses are made of the names that they had. */
function nameContents({ project }) {
  for (const entry of project.getReflectionsByKind(ReflectionKind.Module))
    entry.name = importedName(entry.name);
  // Documents are in the order of their list, entry points by name.
  project.children.sort((a, b) => a.name.localeCompare(b.name));
  project.childrenIncludingDocuments = [...(project.documents ?? []), ...project.children];
  for (const document of project.documents ?? []) {
    const title = titleOf(document);
    if (title !== null) document.name = `${shelfOf(document)}/${title}`;
  }
}

/** Documents come before names of the reference, and guides before other documents. */
function boostDocuments(searchResults) {
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

/** Each table in an element that scrolls, and each output: keys reach them. */
function wrapTables(event) {
  event.parsedText = event.parsedText
    .replaceAll(
      '<table>',
      '<div class="table" role="group" aria-label="Table" tabindex="0"><table>',
    )
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre><code class="text">', '<pre tabindex="0"><code class="text">');
}

/** The entry that TypeDoc calls. */
export function load({ renderer }) {
  renderer.on(RendererEvent.BEGIN, nameContents, 1000);
  let results = [];
  renderer.on(IndexEvent.PREPARE_INDEX, ({ searchResults }) => {
    boostDocuments(searchResults);
    results = searchResults;
  });
  renderer.on(RendererEvent.END, ({ outputDirectory }) => {
    writeSearchTexts(outputDirectory, results, (one) => renderer.router.getFullUrl(one));
    mendSearch(outputDirectory);
  });
  // Before Markdown is parsed, and after.
  renderer.on(MarkdownEvent.PARSE, markOutputs, 1000);
  renderer.on(MarkdownEvent.PARSE, wrapTables, -1000);
}
