import { byId } from '../element.js';

/**
 * Shows a report as a part of the page: as high as it is, without a scroll bar of its own, and without the heading and the
 * verdict that the page has above it. Scripts do not run in it.
 * @returns the addresses of the report as HTML and as JSON, which can be saved until they are released
 */
export function showReport(html: string, json: string): readonly string[] {
  const addresses = [
    URL.createObjectURL(new Blob([html], { type: 'text/html' })),
    URL.createObjectURL(new Blob([json], { type: 'application/json' })),
  ];
  byId('saveHtml', HTMLAnchorElement).href = addresses[0];
  byId('saveJson', HTMLAnchorElement).href = addresses[1];
  const frame = byId('frame', HTMLIFrameElement);
  frame.onload = () => {
    const shown = frame.contentDocument;
    if (shown === null) return;
    const style = shown.createElement('style');
    style.textContent = 'h1,#verdict{display:none}';
    shown.head.append(style);
    const fit = () => {
      frame.style.height = `${shown.documentElement.offsetHeight + 2}px`;
    };
    new ResizeObserver(fit).observe(shown.documentElement);
    fit();
  };
  frame.src = addresses[0];
  return addresses;
}
