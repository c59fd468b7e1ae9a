export { renderCertificatePage } from './certificate-page.js';
export { fileName, type ProgramTexts } from './program-texts.js';
