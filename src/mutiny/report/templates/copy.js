// A button that copies the text of another element, and says that it did.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    const chosen = getSelection();
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch {
      chosen.selectAllChildren(text);
      document.execCommand("copy");
      chosen.removeAllRanges();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}
