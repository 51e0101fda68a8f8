"use strict";
// Commands can be copied: each `pre` of class `sh` gets a button when it is first to be seen.

/** A button that copies the text; where the browser does not allow that, the button selects the text. */
function copyButton(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: copy with the keyboard";
    }
  });
  return button;
}

/** Puts a button behind each command in the element that is in no closed part of the page. */
function offerCopies(element) {
  for (const text of element.querySelectorAll("pre.sh:not(.ready)")) {
    if (text.closest("details:not([open])")) continue;
    text.classList.add("ready");
    text.after(copyButton(text));
  }
}

document.addEventListener("toggle", (event) => event.target.open && offerCopies(event.target), true);
addEventListener("load", () => requestIdleCallback(() => offerCopies(document.body)));
