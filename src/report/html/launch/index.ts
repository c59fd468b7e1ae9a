export { renderCertificatePage } from './certificate-page.js';
