// Finds the browser of this machine.

import { accessSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const { chromium } = createRequire(join(process.env.CLIENT_HOME, "/"))("playwright-core");

function installed() {
  for (const folder of process.env.PATH.split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      try {
        accessSync(join(folder, name));
        return join(folder, name);
      } catch {
        // Not in this folder.
      }
    }
  }
  throw new Error("no Chromium on the path; on Debian: apt-get install chromium");
}

/** A browser without a window. */
export const launch = (...flags) =>
  chromium.launch({ executablePath: installed(), args: ["--no-sandbox", ...flags] });
